"""The purpose of a model within its task: classification, detection, causal-lm …

The tables below derive it from the model's name. It is None if the name is inconclusive, because a
wrong subtask is worse than none. A class is matched by its head (`BertForMaskedLM`), a library
function by its library and name, and this project's own models by a list. Where a class has several
uses, the inputs of the graph decide: a vision-language model that is called with tokens alone is a
`causal-lm`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..sample import Sample

SUBTASKS = (
    # images
    "classification", "detection", "segmentation", "depth-estimation", "keypoint-detection",
    "keypoint-matching", "image-generation", "super-resolution", "masked-image-modeling",
    "optical-flow", "video-classification", "text-recognition", "autoencoding", "rendering",
    # text
    "causal-lm", "masked-lm", "translation", "seq2seq-lm", "sequence-classification",
    "token-classification", "question-answering", "multiple-choice", "pretraining",
    "sentence-similarity",
    # audio
    "speech-recognition", "speech-synthesis", "audio-classification", "speaker-verification",
    "audio-generation", "source-separation", "speech-quality",
    # multimodal
    "image-text-to-text", "audio-text-to-text", "image-text-matching", "captioning",
    "zero-shot-detection", "text-to-image",
    # other
    "forecasting", "recommendation", "tabular", "reinforcement-learning", "node-classification",
    "point-clouds", "simulation", "molecules", "features",
)  # fmt: skip
"""All subtasks. `features` is a model without a head, whose outputs are features for other models.
"""

_HEADS = tuple(
    (head, purpose)
    for purpose, heads in (
        ("causal-lm", "ForCausalLM LMHeadModel DoubleHeadsModel"),
        ("translation", "MTModel"),
        ("image-generation", "ForCausalImageModeling"),
        ("masked-lm", "ForMaskedLM"),
        ("masked-image-modeling", "ForMaskedImageModeling"),
        ("sequence-classification", "ForNextSentencePrediction ForSequenceClassification"),
        ("token-classification", "ForTokenClassification"),
        (
            "question-answering",
            "ForQuestionAnswering ForVisualQuestionAnswering "
            "ForTableQuestionAnswering ForDocumentQuestionAnswering",
        ),
        ("multiple-choice", "ForMultipleChoice"),
        ("image-text-matching", "ForImageTextRetrieval ForImageAndTextRetrieval"),
        ("zero-shot-detection", "ForZeroShotObjectDetection"),
        ("detection", "ForObjectDetection"),
        (
            "segmentation",
            "ForSemanticSegmentation ForUniversalSegmentation "
            "ForInstanceSegmentation ForSegmentation ForImageSegmentation",
        ),
        ("depth-estimation", "ForDepthEstimation"),
        ("keypoint-detection", "ForPoseEstimation ForKeypointDetection"),
        ("keypoint-matching", "ForKeypointMatching"),
        ("super-resolution", "ForImageSuperResolution ForImageToImage"),
        ("classification", "ForImageClassification"),
        ("video-classification", "ForVideoClassification"),
        ("text-recognition", "ForSceneTextRecognition ForTextRecognition"),
        ("speech-recognition", "ForCTC ForRNNT ForTDT ForSpeechToText ForSpeechSeq2Seq"),
        ("speech-synthesis", "ForTextToSpeech ForSpeechToSpeech"),
        ("translation", "ForTextToText"),
        ("audio-classification", "ForAudioClassification ForAudioFrameClassification"),
        ("speaker-verification", "ForXVector"),
        ("forecasting", "ForPrediction ForForecasting"),
        ("pretraining", "ForPreTraining"),
    )
    for head in heads.split()
)
"""Text after `For` in a class name; the first match decides."""

_CONDITIONAL = {
    "nlp": "seq2seq-lm",
    "multimodal": "image-text-to-text",
    "audio": "speech-recognition",
}
"""`ForConditionalGeneration`, by task."""

_DECODERS = {"nlp": "causal-lm", "audio": "speech-synthesis"}
"""`ForConditionalGeneration` of models that read one text, by task."""

_TEXT_INPUT = re.compile(r"input_ids_?\Z")
_DECODER_INPUT = re.compile(r"decoder_|encoder_outputs|encoder_hidden_states")
_SOUND_INPUT = re.compile(r"input_features|input_values|audio")
_IMAGE_INPUT = re.compile(r"pixel|image|patches")
"""Patterns of names of inputs."""

_TRANSLATORS = re.compile(r"(?:Marian|M2M100|NllbMoe|FSMT)")
_CAPTIONERS = re.compile(r"(?:Blip|Git|VisionEncoderDecoder)")

_FUNCTIONS = {
    "huggingface/pytorch-image-models": ((r".*", "classification"),),
    "qubvel-org/segmentation_models.pytorch": ((r".*", "segmentation"),),
    "pytorch/vision": (
        (r"deeplabv3_|fcn_|lraspp_", "segmentation"),
        (r"raft_", "optical-flow"),
        (r"r3d_|mc3_|r2plus1d_|s3d|mvit_|swin3d_", "video-classification"),
        (r"fasterrcnn_|retinanet_|ssd|fcos_|maskrcnn_", "detection"),
        (r"keypointrcnn_", "keypoint-detection"),
        (r"[a-z]", "classification"),
    ),
    "ultralytics/ultralytics": (
        (r".*-seg|FastSAM|sam", "segmentation"),
        (r".*-cls", "classification"),
        (r".*-pose", "keypoint-detection"),
        (r".*", "detection"),
    ),
    "pytorch/audio": (
        (r"ConvTasNet|conv_tasnet|hdemucs|HDemucs", "source-separation"),
        (r"squim_|Squim", "speech-quality"),
        (r"DeepSpeech|Wav2Letter|emformer_rnnt|RNNT|conformer_rnnt", "speech-recognition"),
        (r"WaveRNN|Tacotron", "speech-synthesis"),
        (r"hubert_|wav2vec2_|wavlm_|Emformer|Conformer", "features"),
    ),
    "huggingface/diffusers": (
        (r"Autoencoder|VQModel|AsymmetricAutoencoder|Consistency", "autoencoding"),
        (r"UNet1D", "reinforcement-learning"),
        (r"UNet2DModel", "image-generation"),
        (r".*(?:Audio|Music|Stable ?Audio)", "audio-generation"),
        (r".*UNet|.*ControlNet|UVit|.*Transformer|.*Prior|.*Adapter|.*DiT", "text-to-image"),
    ),
    "osmr/pytorchcv": (
        (
            r"(?:fcn8sd|pspnet|deeplabv3|icnet|fastscnn|cgnet|dabnet|sinet|bisenet|danet|fpenet"
            r"|contextnet|lednet|esnet|edanet|enet|erfnet|linknet|segnet|unet|sqnet|espcnet)\.",
            "segmentation",
        ),
        (r"alphapose|simplepose|lwopenpose|ibppose|pfpcnet", "keypoint-detection"),
        (r"centernet|lffd", "detection"),
        (r"raft", "optical-flow"),
        (r"(?!prnet)", "classification"),
    ),
    "Project-MONAI/MONAI": (
        (r".*\.(?:Restormer|VoxelMorph|LocalNet|GlobalNet|RegUNet|\w*Discriminator)", None),
        (r".*\.(?:Regressor|DiffusionModelEncoder)", None),
        (r".*\.(?:\w*Diffusion\w*|ControlNet|SPADENet|Generator|Decoder\w+)\Z", "image-generation"),
        (r".*\.(?:MaskedAuto\w+)", "masked-image-modeling"),
        (r".*\.(?:\w*Auto\w*|VQVAE)\Z", "autoencoding"),
        (r"densenet|senet|resnet|efficientnet|vit\.|milmodel|torchvision", "classification"),
        (r".", "segmentation"),
    ),
    "lucidrains/vit-pytorch": (
        (r"(?:simple_)?vit_3d|cct_3d|vivit", "video-classification"),
        (r"vaat\.AST", "audio-classification"),
        (r"vat_siglip\.SigLIP\Z|simple_vit_with_qk_norm", "features"),
        (r"vat|vaat|(?:simple_)?vit_1d", None),
        (r".", "classification"),
    ),
    "kornia/kornia": (
        (r"feature\.(?:DISK|ALIKED|XFeat|KeyNet|DeDoDe)", "keypoint-detection"),
        (r"feature\.(?:OriNet|LAFAffNet|DeFMO)|models\.dexined", None),
        (r"models\.(?:RRDB|small_sr)", "super-resolution"),
        (r".*(?:TinyViT|MobileViT)", "classification"),
        (r".*(?:RTDETR|YuNet)", "detection"),
        (r".*siglip2", "image-text-matching"),
        (r".", "features"),
    ),
    "chaiNNer-org/spandrel": (
        (r"DnCNN|DRUNet|NAFNet|KBNet|LaMa|MixDehazeNet|RetinexFormer|FFTformer|Uformer", None),
        (r"RestoreFormer|GFPGAN", None),
        (r".", "super-resolution"),
    ),
    "asteroid-team/asteroid": (
        (r".*\.(?:DeMask|VADNet)", None),
        (r".", "source-separation"),
    ),
    "speechbrain/speechbrain": (
        (r".*\.(?:ECAPA_TDNN|Xvector|ResNet)", "speaker-verification"),
        (r".*\.(?:HifiganGenerator|UnitHifiganGenerator|DiffWave)", "speech-synthesis"),
        (r"MetricGAN\w*\.MetricDiscriminator", "speech-quality"),
        (r".*\.MaskNet", "source-separation"),
        (r".*\.(?:RNNLM)", "causal-lm"),
        (r".*\.(?:Cnn14|BEATs|W2VLatent|ContextNet|CRDNN|ESPnetVGG|Convolution|SB)", "features"),
    ),
    "neuraloperator/neuraloperator": ((r".", "simulation"),),
    "datawhalechina/torch-rechub": ((r".", "recommendation"),),
    "PaddlePaddle/PaddleClas": (
        (r"AdaFace|MobileFaceNet|CLIP_|MAE_|cae_", "features"),
        (r"SVTR", "text-recognition"),
        (r".", "classification"),
    ),
    "PaddlePaddle/Paddle": ((r"[a-z]", "classification"),),
    "pyg-team/pytorch_geometric": (
        (r"SchNet|DimeNet|ViSNet|NeuralFingerprint|AttentiveFP", "molecules"),
        (r"PointNet|PointTransformer|DynamicEdge|XConv|PPFConv|.*Point", "point-clouds"),
        (r"LightGCN", "recommendation"),
        (r"[A-Z]", "node-classification"),
    ),
}
"""For each source, patterns for the beginning of a name and their subtasks. The first match
decides.

None marks names with a purpose outside `SUBTASKS`.
"""

_OWN = {
    "classification": "resnet vgg densenet squeezenet shufflenet inverted_residual_net convmixer "
    "mlp_mixer vision_transformer",
    "video-classification": "convnet_3d",
    "detection": "retinanet yolo text_detector box_decoder",
    "segmentation": "unet deeplab",
    "super-resolution": "super_resolution upscaler",
    "text-recognition": "text_recognizer",
    "image-generation": "dcgan generator diffusion_unet diffusion_transformer style_net real_nvp",
    "autoencoding": "image_autoencoder vector_quantizer",
    "rendering": "radiance_field siren",
    "causal-lm": "decoder_language_model rotary_language_model recurrent_language_model "
    "language_stack expert_language_model",
    "translation": "translator transformer_translator attention_translator",
    "token-classification": "tagger sequence_tagger",
    "sequence-classification": "text_convolutions",
    "sentence-similarity": "sentence_pair two_towers",
    "speech-recognition": "speech_recognizer recognizer conformer",
    "audio-generation": "wavenet",
    "speech-synthesis": "mel_synthesizer vocoder",
    "audio-classification": "sound_classifier",
    "speaker-verification": "speaker_net scaled_speaker_net",
    "source-separation": "tasnet",
    "image-text-matching": "image_text_contrast",
    "captioning": "captioner",
    "question-answering": "question_answerer",
    "forecasting": "basis_expansion decomposed_linear inverted_transformer period_net "
    "temporal_convolutions recurrent_forecaster",
    "recommendation": "dlrm factorization factorization_net interest interest_net recommender "
    "sequence_recommender neural_factorization",
    "tabular": "attentive_table tabular_resnet feature_transformer",
    "reinforcement-learning": "agent atari_agent soft_actor world_model",
    "node-classification": "graph_attention graph_convolutions",
    "point-clouds": "point_net point_cloud",
    "simulation": "physics_net fourier_operator deeponet branch_and_trunk mesh_simulator "
    "weather_mixer navier_stokes_step conv_lstm convolutional_memory neural_ode",
    "molecules": "atom_potential equivariant_net",
    "features": "relative_encoder encoder_model encoder decoder transformer",
}
"""Functions of `builder.architectures` and `builder.architectures_paddle`."""
_OWN_OF = {name: subtask for subtask, names in _OWN.items() for name in names.split()}
_OWN_SOURCE = "graphnet-datasets/builder"


def subtask(sample: Sample) -> str | None:
    """Return the subtask of a sample's model, or None if its name is inconclusive.

    >>> from graphnet_datasets.sample import Input, Value, Provenance
    >>> inputs = (Input("input", Value("float32", (2,))),)
    >>> bert = Sample("a", "torch", "nlp", inputs, (), None,
    ...     provenance=Provenance(model_name="BertForMaskedLM"))
    >>> subtask(bert)
    'masked-lm'
    """
    provenance = sample.provenance
    inputs = [value.source_name for value in sample.inputs if value.role == "input"]
    return subtask_of(sample.task, provenance.source, provenance.model_name, inputs)


def subtask_of(task: str, source: str, model_name: str, inputs: Iterable[str] = ()) -> str | None:
    """Return the subtask of a model, or None if its name is inconclusive.

    `inputs` are the names of the inputs that contain data, if known.

    >>> subtask_of("multimodal", "huggingface/transformers", "LlavaForConditionalGeneration")
    'image-text-to-text'
    >>> subtask_of("nlp", "huggingface/transformers", "AriaForConditionalGeneration", ["input_ids"])
    'causal-lm'
    >>> subtask_of("cv", "pytorch/vision", "fcn_resnet50")
    'segmentation'
    >>> subtask_of("cv", "someone/else", "net") is None
    True
    """
    if not model_name:
        return None
    if source == _OWN_SOURCE:
        return _OWN_OF.get(model_name)
    if source in _FUNCTIONS:
        for pattern, purpose in _FUNCTIONS[source]:
            if re.match(pattern, model_name):
                return purpose
        return None
    return _by_head(task, model_name, tuple(inputs))


def _by_head(task: str, model_name: str, inputs: tuple[str, ...]) -> str | None:
    if task == "audio" and "ForSequenceClassification" in model_name:
        return "audio-classification"
    for head, purpose in _HEADS:
        if head in model_name:
            return purpose
    if "ForConditionalGeneration" in model_name or "ForSeq2SeqLM" in model_name:
        if _TRANSLATORS.match(model_name):
            return "translation"
        if _is_decoder_alone(inputs) and task in _DECODERS:
            return _DECODERS[task]
        if _CAPTIONERS.match(model_name):
            return "captioning"
        if task == "multimodal" and _has(inputs, _SOUND_INPUT) and not _has(inputs, _IMAGE_INPUT):
            return "audio-text-to-text"
        return _CONDITIONAL.get(task)
    if "ForClassification" in model_name:
        return "audio-classification" if task == "audio" else "classification"
    is_bare = model_name[0].isupper() and re.search(
        r"(?:Model|Backbone|Encoder|Decoder)\Z", model_name
    )
    return "features" if is_bare else None


def _is_decoder_alone(inputs: tuple[str, ...]) -> bool:
    """Return whether a graph reads one text, so that it has no encoder of another.

    >>> _is_decoder_alone(("L_input_ids_",))
    True
    >>> _is_decoder_alone(("L_input_ids_", "L_decoder_input_ids_"))
    False
    """
    is_other = any(_has(inputs, names) for names in (_DECODER_INPUT, _SOUND_INPUT, _IMAGE_INPUT))
    return _has(inputs, _TEXT_INPUT) and not is_other


def _has(inputs: tuple[str, ...], names: re.Pattern[str]) -> bool:
    return any(names.search(name) for name in inputs)
