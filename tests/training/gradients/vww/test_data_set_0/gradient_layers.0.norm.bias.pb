Blayers.0.norm.biasJ@~F,ºW„÷?Ä’D=ò¿#l™_aãŞ?¦xj´
Ì?á0}Î.’Ö¿Ì­qı×? MÆÙöÒ?BHÖ·Ô×¿