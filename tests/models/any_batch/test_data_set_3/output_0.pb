
BprobabilitiesJPK¢>>­ÛL>F’;=Ôtù;–<ý–ä<æ!¥=ÉÝÿ=†e3>y>+>oA>xt=ÆÜÅ;=w÷;}çç<}ëŽ=u>ƒXI>Q,>