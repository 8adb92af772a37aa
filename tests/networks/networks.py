"""Networks as people export them: timm's and torchvision's for images at the resolutions of
devices, transformers' with small configurations, untrained. name -> function that gives (module,
example inputs)."""

import timm
import torch
import torchvision.models as tv
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
WITHOUT_WORDS = {k: v for k, v in SIZES.items() if k != "vocab_size"}
SMALL_IMAGE = {**WITHOUT_WORDS, "image_size": 32, "patch_size": 8}
SPEECH = {**WITHOUT_WORDS, "conv_dim": (32,) * 7, "num_conv_pos_embeddings": 16,
          "num_conv_pos_embedding_groups": 4}
# An encoder and a decoder.
BOTH = {"vocab_size": 256, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
        "decoder_ffn_dim": 128}


class Result(torch.nn.Module):
    """A model that takes tensors by position and gives one of its results."""

    def __init__(self, model, names, result):
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *inputs):
        options = {"use_cache": False} if self.result == "logits" else {}
        return getattr(self.model(**dict(zip(self.names, inputs)), **options), self.result)


class Part(torch.nn.Module):
    """What a function makes of a model and its inputs."""

    def __init__(self, model, function):
        super().__init__()
        self.model, self.function = model, function

    def forward(self, *inputs):
        return self.function(self.model, *inputs)


def words(length=24):
    return torch.arange(length).reshape(1, length) * 7 % 200 + 1


def reader(model, config):
    inputs = (words(), torch.ones(1, 24, dtype=torch.long))
    return lambda: (Result(model(config), ["input_ids", "attention_mask"], "last_hidden_state"),
                    inputs)


def writer(model, config):
    return lambda: (Result(model(config), ["input_ids"], "logits"), (words(),))


def sees(model, config, name, shape, result="last_hidden_state"):
    return lambda: (Result(model(config), [name], result), (torch.randn(shape),))


def translates(model, config, name, given):
    """From an encoder's input and the words so far."""
    return lambda: (Result(model(config), [name, "decoder_input_ids"], "logits"),
                    (given, words(12)))


def segments(make):
    return lambda: (Part(make(weights=None, weights_backbone=None, num_classes=5),
                         lambda model, x: model(x)["out"]), (torch.randn(1, 3, 96, 96),))


def flow():
    model = Part(tv.optical_flow.raft_small(), lambda m, a, b: m(a, b, num_flow_updates=2)[-1])
    return model, (torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128))


def detector():
    """The boxes and scores that suppression chooses among."""
    def raw(model, x):
        heads = model.head(list(model.backbone(x).values()))
        return heads["bbox_regression"], heads["cls_logits"]
    model = tv.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None,
                                                       num_classes=5)
    return Part(model, raw), (torch.randn(1, 3, 128, 128),)


def detects(make, size, **options):
    """What whole detectors choose, whichever of two boxes of nearly one score comes first."""
    def chosen(model, x):
        found = model([x])[0]
        return found["scores"], found["boxes"].sum(0)
    return lambda: (Part(make(weights=None, weights_backbone=None, num_classes=5, **options),
                         chosen), (torch.rand(3, size, size),))


def codec():
    model = hf.EncodecModel(hf.EncodecConfig(num_filters=8, hidden_size=32, codebook_dim=32))
    return Part(model, lambda m, x: m.decoder(m.encoder(x))), (torch.randn(1, 1, 1920),)


def image(name, size):
    return lambda: (timm.create_model(name, pretrained=False), (torch.randn(1, 3, size, size),))


DETECTORS = {
    "ssdlite_whole": detects(tv.detection.ssdlite320_mobilenet_v3_large, 320),
    "ssd300": detects(tv.detection.ssd300_vgg16, 300),
    "retinanet": detects(tv.detection.retinanet_resnet50_fpn, 128, min_size=128),
    "fcos": detects(tv.detection.fcos_resnet50_fpn, 128, min_size=128, score_thresh=0.01),
    "fasterrcnn": detects(tv.detection.fasterrcnn_mobilenet_v3_large_320_fpn, 160, min_size=160,
                          box_score_thresh=0),
}
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
    "wav2vec2": sees(hf.Wav2Vec2Model, hf.Wav2Vec2Config(**SPEECH), "input_values", (1, 4000)),
    "ast": sees(hf.ASTModel, hf.ASTConfig(**WITHOUT_WORDS, max_length=64, num_mel_bins=32),
                "input_values", (1, 64, 32)),
    "distilbert": reader(hf.DistilBertModel, hf.DistilBertConfig(
        vocab_size=256, dim=64, n_layers=2, n_heads=4, hidden_dim=128)),
    "xlnet": reader(hf.XLNetModel, hf.XLNetConfig(
        vocab_size=256, d_model=64, n_layer=2, n_head=4, d_inner=128)),
    "convbert": reader(hf.ConvBertModel, hf.ConvBertConfig(embedding_size=32, **SIZES)),
    "funnel": reader(hf.FunnelModel, hf.FunnelConfig(
        vocab_size=256, block_sizes=[1, 1], d_model=64, n_head=4, d_head=16, d_inner=128)),
    "modernbert": reader(hf.ModernBertModel, hf.ModernBertConfig(pad_token_id=0, **SIZES)),
    "bloom": writer(hf.BloomForCausalLM, hf.BloomConfig(
        vocab_size=256, hidden_size=64, n_layer=2, n_head=4)),
    "falcon": writer(hf.FalconForCausalLM, hf.FalconConfig(
        vocab_size=256, hidden_size=64, num_hidden_layers=2, num_attention_heads=4)),
    "mistral": writer(hf.MistralForCausalLM, hf.MistralConfig(
        num_key_value_heads=2, sliding_window=8, **SIZES)),
    "qwen3": writer(hf.Qwen3ForCausalLM, hf.Qwen3Config(
        num_key_value_heads=2, head_dim=16, **SIZES)),
    "rwkv": writer(hf.RwkvForCausalLM, hf.RwkvConfig(
        vocab_size=256, hidden_size=64, num_hidden_layers=2, attention_hidden_size=64,
        intermediate_size=128)),
    "recurrent_gemma": writer(hf.RecurrentGemmaForCausalLM, hf.RecurrentGemmaConfig(
        num_key_value_heads=2, head_dim=16, lru_width=64, attention_window_size=16,
        **{**SIZES, "num_hidden_layers": 3})),
    "bart": translates(hf.BartForConditionalGeneration, hf.BartConfig(**BOTH), "input_ids",
                       words()),
    "whisper": translates(hf.WhisperForConditionalGeneration, hf.WhisperConfig(
        num_mel_bins=16, max_source_positions=50, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1, **BOTH), "input_features", torch.randn(1, 16, 100)),
    "hubert": sees(hf.HubertModel, hf.HubertConfig(**SPEECH), "input_values", (1, 4000)),
    "wavlm": sees(hf.WavLMModel, hf.WavLMConfig(**SPEECH), "input_values", (1, 4000)),
    "clip_vision": sees(hf.CLIPVisionModel, hf.CLIPVisionConfig(**SMALL_IMAGE), "pixel_values",
                        (1, 3, 32, 32)),
    "videomae": sees(hf.VideoMAEModel, hf.VideoMAEConfig(num_frames=4, **SMALL_IMAGE),
                     "pixel_values", (1, 4, 3, 32, 32)),
    "segformer": sees(hf.SegformerForSemanticSegmentation, hf.SegformerConfig(
        hidden_sizes=[16, 32, 40, 64], num_attention_heads=[1, 2, 2, 4], depths=[1] * 4,
        decoder_hidden_size=64), "pixel_values", (1, 3, 64, 64), "logits"),
    "swinv2": sees(hf.Swinv2Model, hf.Swinv2Config(
        image_size=64, patch_size=4, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4),
        "pixel_values", (1, 3, 64, 64)),
    "dpt": sees(hf.DPTForDepthEstimation, hf.DPTConfig(
        image_size=64, patch_size=16, backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[16, 24, 32, 48], fusion_hidden_size=32,
        **{**WITHOUT_WORDS, "num_hidden_layers": 4}), "pixel_values", (1, 3, 64, 64),
        "predicted_depth"),
    "patchtst": sees(hf.PatchTSTForPrediction, hf.PatchTSTConfig(
        num_input_channels=3, context_length=64, patch_length=8, patch_stride=8, d_model=32,
        num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, prediction_length=8),
        "past_values", (1, 64, 3), "prediction_outputs"),
    "encodec": codec,
    "deeplab": segments(tv.segmentation.deeplabv3_mobilenet_v3_large),
    "lraspp": segments(tv.segmentation.lraspp_mobilenet_v3_large),
    "ssdlite": detector,
    **DETECTORS,
    "raft_small": flow,
    "r3d_18": lambda: (tv.video.r3d_18(), (torch.randn(1, 3, 8, 32, 32),)),
}
