"""Small random models of many architectures, each with a tokenizer of its own kind, as folders."""

from pathlib import Path
from typing import Any

from labelwise.features.pretrained import quiet

TEXT = "the law of fishing quotas in northern waters a cheap red shoe for running children"
WORDS = TEXT.split()
ARCHITECTURES = ("bert", "roberta", "xlnet", "mpnet", "distilbert", "deberta-v3", "modernbert", "t5")

_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def write_model(folder: Path, kind: str) -> Path:
    """Write config.json, random weights and a tokenizer of this architecture; return the folder."""
    import torch
    import transformers

    tokenizer = make_tokenizer(kind)
    ids = {"pad_token_id": tokenizer.pad_token_id, "bos_token_id": tokenizer.cls_token_id}
    common: dict[str, Any] = {**_SIZES, **ids, "eos_token_id": tokenizer.sep_token_id, "vocab_size": len(tokenizer)}
    if kind == "bert":
        config = transformers.BertConfig(**common, max_position_embeddings=64)
    elif kind == "roberta":
        config = transformers.RobertaConfig(**common, max_position_embeddings=66, type_vocab_size=1)
    elif kind == "mpnet":
        config = transformers.MPNetConfig(**common, max_position_embeddings=66)
    elif kind == "modernbert":
        special = {"cls_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id}
        windows = {"local_attention": 8, "global_attn_every_n_layers": 2}
        config = transformers.ModernBertConfig(**common, **special, **windows, max_position_embeddings=64)
    elif kind == "deberta-v3":
        config = transformers.DebertaV2Config(
            **common,
            max_position_embeddings=64,
            relative_attention=True,
            position_buckets=16,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type=["p2c", "c2p"],
            type_vocab_size=0,
            position_biased_input=False,
        )
    elif kind == "distilbert":
        sizes = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 64}
        config = transformers.DistilBertConfig(**sizes, vocab_size=len(tokenizer), **ids)
    elif kind == "t5":
        sizes = {"d_model": 32, "num_layers": 2, "num_heads": 4, "d_kv": 8, "d_ff": 64}
        config = transformers.T5Config(**sizes, vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
    else:
        sizes = {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}
        config = transformers.XLNetConfig(**sizes, vocab_size=len(tokenizer), **ids)
    torch.manual_seed(0)
    with quiet():
        auto = transformers.AutoModelForTextEncoding if kind == "t5" else transformers.AutoModel
        model = auto.from_config(config)
        for weight in model.parameters():  # larger than at birth, or all texts would look alike
            weight.data.add_(torch.randn_like(weight) * 0.1)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder


def make_tokenizer(kind: str, n_more: int = 0) -> Any:
    """A tokenizer of words, with the special tokens of an architecture and `n_more` words that nobody uses."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    like_bert = kind in ("bert", "distilbert", "deberta-v3", "modernbert")
    if like_bert:
        pad, unk, cls, sep, mask = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
    elif kind == "xlnet":
        pad, unk, cls, sep, mask = "<pad>", "<unk>", "<cls>", "<sep>", "<mask>"
    else:
        pad, unk, cls, sep, mask = "<pad>", "<unk>", "<s>", "</s>", "<mask>"
    first = [cls, pad, sep, unk, mask] if kind in ("roberta", "mpnet") else [pad, unk, cls, sep, mask]
    vocabulary = {word: at for at, word in enumerate([*first, *WORDS, *(f"##{letter}" for letter in "aeinrst")])}
    vocabulary |= {f"unused{at}": len(vocabulary) + at for at in range(n_more)}
    model = models.WordPiece(vocabulary, unk_token=unk) if like_bert else models.WordLevel(vocabulary, unk_token=unk)
    backend = Tokenizer(model)
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    one = f"{cls} $A {sep}"
    if kind == "xlnet":  # at the end, and with a type of its own
        one = f"$A:0 {sep}:0 {cls}:2"
    elif kind == "t5":  # which has no classification token
        one = f"$A {sep}"
    special = [(token, vocabulary[token]) for token in (cls, sep) if token in one]
    backend.post_processor = processors.TemplateProcessing(single=one, special_tokens=special)
    names = ["input_ids", "attention_mask"]
    if kind in ("bert", "xlnet", "deberta-v3"):
        names.insert(1, "token_type_ids")
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=pad,
        unk_token=unk,
        cls_token=None if kind == "t5" else cls,
        sep_token=sep,
        mask_token=mask,
        padding_side="left" if kind == "xlnet" else "right",
        model_input_names=names,
        model_max_length=64,
    )
