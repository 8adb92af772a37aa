
BprobabilitiesJ(•9>„R>$–*=p8Ø;¯W<nÊæ<QÜŠ=>[c>EÔ>