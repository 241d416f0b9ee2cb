"""Subtasks follow from names, and only where these tell."""

from __future__ import annotations

import collections
from typing import Any

import pytest

from graphnet_datasets.analysis.subtasks import _OWN_OF, SUBTASKS, subtask_of
from graphnet_datasets.storage.loading import load_dataset

TRANSFORMERS = "huggingface/transformers"


@pytest.mark.parametrize(
    ("task", "source", "name", "expected"),
    [
        ("nlp", TRANSFORMERS, "LlamaForCausalLM", "causal-lm"),
        ("nlp", TRANSFORMERS, "GPT2LMHeadModel", "causal-lm"),
        ("nlp", TRANSFORMERS, "MarianMTModel", "translation"),
        ("nlp", TRANSFORMERS, "M2M100ForConditionalGeneration", "translation"),
        ("nlp", TRANSFORMERS, "T5ForConditionalGeneration", "seq2seq-lm"),
        ("audio", TRANSFORMERS, "WhisperForConditionalGeneration", "speech-recognition"),
        ("audio", TRANSFORMERS, "Wav2Vec2ForCTC", "speech-recognition"),
        ("cv", TRANSFORMERS, "DetrForObjectDetection", "detection"),
        ("multimodal", TRANSFORMERS, "OwlViTForZeroShotObjectDetection", "zero-shot-detection"),
        ("cv", TRANSFORMERS, "ViTModel", "features"),
        ("cv", TRANSFORMERS, "Unheard", None),
        ("cv", "huggingface/pytorch-image-models", "resnet50", "classification"),
        ("cv", "pytorch/vision", "deeplabv3_resnet50", "segmentation"),
        ("cv", "pytorch/vision", "r3d_18", "video-classification"),
        ("cv", "ultralytics/ultralytics", "yolo11n-pose.yaml", "keypoint-detection"),
        ("cv", "ultralytics/ultralytics", "yolo11n.yaml", "detection"),
        ("cv", "graphnet-datasets/builder", "unet", "segmentation"),
        ("other", "graphnet-datasets/builder", "mlp", None),
        ("cv", "osmr/pytorchcv", "unet.unet_cityscapes", "segmentation"),
        ("cv", "osmr/pytorchcv", "enet.enet_cityscapes", "segmentation"),
        ("cv", "osmr/pytorchcv", "senet.senet154", "classification"),
        ("cv", "osmr/pytorchcv", "prnet.prnet", None),
        ("cv", "Project-MONAI/MONAI", "swin_unetr.SwinUNETR", "segmentation"),
        ("cv", "Project-MONAI/MONAI", "densenet.DenseNet264", "classification"),
        ("cv", "Project-MONAI/MONAI", "autoencoderkl.AutoencoderKL", "autoencoding"),
        ("cv", "Project-MONAI/MONAI", "vitautoenc.ViTAutoEnc", "autoencoding"),
        ("cv", "Project-MONAI/MONAI", "spade_autoencoderkl.SPADEAutoencoderKL", "autoencoding"),
        (
            "cv",
            "Project-MONAI/MONAI",
            "diffusion_model_unet.DiffusionModelUNet",
            "image-generation",
        ),
        ("cv", "Project-MONAI/MONAI", "diffusion_model_unet.DiffusionModelEncoder", None),
        ("cv", "Project-MONAI/MONAI", "voxelmorph.VoxelMorph", None),
        ("cv", "lucidrains/vit-pytorch", "vivit.ViViT", "video-classification"),
        ("cv", "lucidrains/vit-pytorch", "vat_siglip.SigLIPVAT", None),
        ("cv", "lucidrains/vit-pytorch", "xcit.XCiT", "classification"),
        ("cv", "kornia/kornia", "models.rt_detr.RTDETR.from_name", "detection"),
        ("cv", "kornia/kornia", "feature.HardNet8", "features"),
        ("cv", "chaiNNer-org/spandrel", "HAT.HAT", "super-resolution"),
        ("cv", "chaiNNer-org/spandrel", "LaMa.LaMa", None),
        ("audio", "asteroid-team/asteroid", "conv_tasnet.ConvTasNet", "source-separation"),
        ("audio", "speechbrain/speechbrain", "ECAPA_TDNN.ECAPA_TDNN", "speaker-verification"),
        ("audio", "speechbrain/speechbrain", "HifiGAN.HifiganDiscriminator", None),
        ("scientific", "neuraloperator/neuraloperator", "fno.FNO", "simulation"),
        ("other", "datawhalechina/torch-rechub", "ranking.DCN", "recommendation"),
        ("cv", "someone/else", "resnet50", None),
        ("cv", "", "", None),
    ],
)
def test_subtasks_follow_from_names(
    task: str, source: str, name: str, expected: str | None
) -> None:
    assert subtask_of(task, source, name) == expected


@pytest.mark.parametrize(
    ("task", "name", "inputs", "expected"),
    [
        ("nlp", "LlavaForConditionalGeneration", ["L_input_ids_"], "causal-lm"),
        (
            "nlp",
            "T5ForConditionalGeneration",
            ["L_input_ids_", "L_decoder_input_ids_"],
            "seq2seq-lm",
        ),
        ("nlp", "T5ForConditionalGeneration", ["L_hidden_states_"], "seq2seq-lm"),
        (
            "multimodal",
            "LlavaForConditionalGeneration",
            ["L_input_ids_", "L_pixel_values_"],
            "image-text-to-text",
        ),
        (
            "multimodal",
            "VoxtralForConditionalGeneration",
            ["L_input_ids_", "L_input_features_"],
            "audio-text-to-text",
        ),
        ("audio", "HubertForSequenceClassification", [], "audio-classification"),
    ],
)
def test_inputs_decide_between_the_uses_of_a_class(
    task: str, name: str, inputs: list[str], expected: str
) -> None:
    assert subtask_of(task, TRANSFORMERS, name, inputs) == expected


def test_the_vocabulary_is_closed_and_the_embedded_rows_hold_it() -> None:
    assert set(_OWN_OF.values()) <= set(SUBTASKS)
    rows: Any = load_dataset(
        "graphnet", "all", split="all", columns=["task", "source", "model_name", "subtask"]
    )
    counts: collections.Counter[str | None] = collections.Counter()
    for row in rows:
        if "ForConditionalGeneration" not in row["model_name"]:  # depends on the inputs
            assert row["subtask"] == subtask_of(row["task"], row["source"], row["model_name"])
        counts[row["subtask"]] += 1
    assert counts.keys() - {None} <= set(SUBTASKS)
    assert counts[None] < 0.05 * len(rows)
    assert len(counts) > 30
