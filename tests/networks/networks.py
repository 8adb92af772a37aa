"""Networks as people export them: timm's for images at the resolutions of devices, transformers'
with small configurations, untrained. name -> function that gives (module, example inputs)."""

import timm
import torch
import transformers as hf

# Resolution: image networks of that square size.
IMAGE = {
    96: "mobilenetv3_small_050 mobilenetv4_conv_small ghostnet_100 convnext_atto repvgg_a0 "
        "rexnet_100 hardcorenas_a lcnet_050 tinynet_e repvit_m0_9 poolformer_s12 nfnet_l0 "
        "resnest14d skresnet18 selecsls42b dla34 hrnet_w18_small vovnet39a cspresnet50 darknet53 "
        "res2net50_14w_8s gcresnet33ts focalnet_tiny_srf pvt_v2_b0 ese_vovnet19b_dw mobileone_s0 "
        "regnetx_002 mnasnet_small semnasnet_075 fbnetc_100 spnasnet_100 hgnetv2_b0 starnet_s1 "
        "mambaout_femto inception_next_atto rdnet_tiny nextvit_small",
    128: "mobilevit_xxs mobilevitv2_050 fastvit_t8 edgenext_xx_small efficientvit_b0",
    160: "efficientnet_b0 tf_efficientnet_lite0 inception_v3 test_vit",
    224: "levit_128s efficientvit_m0 deit_tiny_patch16_224 swin_tiny_patch4_window7_224 "
         "mixer_s32_224 resmlp_12_224 xcit_nano_12_p16_224 coatnet_nano_rw_224 convit_tiny "
         "cait_xxs24_224 shvit_s1 swiftformer_xs tiny_vit_5m_224 efficientformerv2_s0 "
         "visformer_tiny",
    256: "maxvit_pico_rw_256 sebotnet33ts_256 lambda_resnet26t",
}
SIZES = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 128}
SMALL_IMAGE = {**{k: v for k, v in SIZES.items() if k != "vocab_size"}, "image_size": 32,
               "patch_size": 8}


class Result(torch.nn.Module):
    """A model that takes tensors by position and gives one of its results."""

    def __init__(self, model, names, result):
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *inputs):
        options = {"use_cache": False} if self.result == "logits" else {}
        return getattr(self.model(**dict(zip(self.names, inputs)), **options), self.result)


def words(length=24):
    return torch.arange(length).reshape(1, length) * 7 % 200 + 1


def reader(model, config):
    inputs = (words(), torch.ones(1, 24, dtype=torch.long))
    return lambda: (Result(model(config), ["input_ids", "attention_mask"], "last_hidden_state"),
                    inputs)


def writer(model, config):
    return lambda: (Result(model(config), ["input_ids"], "logits"), (words(),))


def sees(model, config, name, shape):
    return lambda: (Result(model(config), [name], "last_hidden_state"), (torch.randn(shape),))


def image(name, size):
    return lambda: (timm.create_model(name, pretrained=False), (torch.randn(1, 3, size, size),))


NETWORKS = {name: image(name, size) for size, names in IMAGE.items() for name in names.split()}
NETWORKS |= {
    "bert": reader(hf.BertModel, hf.BertConfig(**SIZES)),
    "roberta": reader(hf.RobertaModel, hf.RobertaConfig(**SIZES)),
    "albert": reader(hf.AlbertModel, hf.AlbertConfig(embedding_size=32, **SIZES)),
    "electra": reader(hf.ElectraModel, hf.ElectraConfig(embedding_size=32, **SIZES)),
    "mobilebert": reader(hf.MobileBertModel,
                         hf.MobileBertConfig(vocab_size=256, num_hidden_layers=2)),
    "deberta": reader(hf.DebertaV2Model, hf.DebertaV2Config(
        relative_attention=True, pos_att_type=["p2c", "c2p"], **SIZES)),
    "t5_encoder": reader(hf.T5EncoderModel, hf.T5Config(
        vocab_size=256, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)),
    "gpt2": writer(hf.GPT2LMHeadModel, hf.GPT2Config(
        vocab_size=256, n_embd=64, n_layer=2, n_head=4, n_positions=64)),
    "gpt_neox": writer(hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig(**SIZES)),
    "llama": writer(hf.LlamaForCausalLM, hf.LlamaConfig(num_key_value_heads=2, **SIZES)),
    "qwen2": writer(hf.Qwen2ForCausalLM, hf.Qwen2Config(num_key_value_heads=2, **SIZES)),
    "gemma": writer(hf.GemmaForCausalLM, hf.GemmaConfig(
        num_key_value_heads=2, head_dim=16, **SIZES)),
    "phi": writer(hf.PhiForCausalLM, hf.PhiConfig(**SIZES)),
    "mamba": writer(hf.MambaForCausalLM, hf.MambaConfig(
        vocab_size=256, hidden_size=32, num_hidden_layers=2, state_size=8)),
    "vit": sees(hf.ViTModel, hf.ViTConfig(**SMALL_IMAGE), "pixel_values", (1, 3, 32, 32)),
    "wav2vec2": sees(hf.Wav2Vec2Model, hf.Wav2Vec2Config(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        conv_dim=(32,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4),
        "input_values", (1, 4000)),
    "ast": sees(hf.ASTModel, hf.ASTConfig(
        **{k: v for k, v in SIZES.items() if k != "vocab_size"}, max_length=64, num_mel_bins=32),
        "input_values", (1, 64, 32)),
}
