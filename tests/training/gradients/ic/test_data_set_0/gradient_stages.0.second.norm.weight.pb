Bstages.0.second.norm.weightJ€£7
©E»?¦­×·^?G?ê»‚f3S?ÉUuÒïK3¿c…¶7^är¿QÒEİ@¿äE”‚il`¿$%•c“‚?`„å.©Ëq¿+øöîua?ÂÏ83IDs?×èÔÃØUm?Œİ-[ˆˆr?Á$÷Ÿõ$Œ?7«´†y?¡ù¯€Â?¿