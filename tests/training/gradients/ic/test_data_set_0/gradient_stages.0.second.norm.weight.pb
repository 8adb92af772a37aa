Bstages.0.second.norm.weightJ€”+
©E»?”×·^?G?6s‚f3S?£:uÒïK3¿~¶7^är¿^ÇEİ@¿"A”‚il`¿X•c“‚?•nå.©Ëq¿ôêöîua?l×83IDs?İÔÃØUm?È-[ˆˆr?÷Ÿõ$Œ?‘´†y?©±€Â?¿