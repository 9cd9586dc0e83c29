//! What a model's header says of its shape, checked.

use super::error::ModelError;
use super::gguf::GgufFile;

/// Which two numbers of a head's vector rotate together. The converter to GGUF permutes the
/// rows of llama's query and key matrices so that they are neighbours; qwen2's are left as
/// they were trained, with a partner half a vector away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RopePairs {
    Neighbours,
    Halves,
}

/// The numbers that the decoder is built from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Architecture {
    pub(super) layers: usize,
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_width: usize,
    pub(super) feed_forward: usize,
    pub(super) vocabulary: usize,
    /// The window that the model was trained for, in tokens.
    pub(super) context: usize,
    pub(super) norm_epsilon: f32,
    pub(super) rope_base: f32,
    /// Positions are divided by it.
    pub(super) rope_scale: f32,
    pub(super) rope_pairs: RopePairs,
}

impl Architecture {
    /// Reads the shape from the header. Only `llama` and `qwen2` are known.
    pub(super) fn of(file: &GgufFile) -> Result<Self, ModelError> {
        let name = file
            .text("general.architecture")
            .ok_or_else(|| file.unsupported("general.architecture is missing"))?;
        let rope_pairs = match name {
            "llama" => RopePairs::Neighbours,
            "qwen2" => RopePairs::Halves,
            other => {
                return Err(file.unsupported(format!(
                    "its architecture is {other}, and only llama and qwen2 are known here"
                )));
            }
        };
        let key = |tail: &str| format!("{name}.{tail}");
        if file.number(&key("expert_count"), 0..=4096)?.unwrap_or(0) > 0 {
            return Err(file.unsupported("mixtures of experts are not known here"));
        }
        let hidden = file.required(&key("embedding_length"), 1..=65_536)?;
        let heads = file.required(&key("attention.head_count"), 1..=1024)?;
        let kv_heads = file
            .number(&key("attention.head_count_kv"), 1..=1024)?
            .unwrap_or(heads);
        let head_width = file
            .number(&key("attention.key_length"), 2..=1024)?
            .unwrap_or(hidden / heads);
        let rotated = file
            .number(&key("rope.dimension_count"), 2..=1024)?
            .unwrap_or(head_width);
        if !heads.is_multiple_of(kv_heads) || head_width < 2 || !head_width.is_multiple_of(2) {
            return Err(file.unsupported(format!(
                "{heads} heads over {kv_heads} key heads of width {head_width} do not fit together"
            )));
        }
        if rotated != head_width {
            return Err(file.unsupported("heads that rotate in part are not known here"));
        }
        let vocabulary = match file.shape("token_embd.weight") {
            Some(&[rows, _]) if (2..=2_000_000).contains(&rows) => rows,
            _ => return Err(file.unsupported("the tensor token_embd.weight is missing")),
        };
        let trained = file.required(&key("context_length"), 1..=16_000_000)?;
        let (rope_scale, context) = match file.text(&key("rope.scaling.type")) {
            Some("linear") => (file.fraction(&key("rope.scaling.factor"), 1.0)?, trained),
            // Within its original window such a model needs no scaling.
            Some("yarn") => {
                let original = key("rope.scaling.original_context_length");
                (1.0, file.number(&original, 1..=trained)?.unwrap_or(trained))
            }
            _ => (1.0, trained),
        };
        Ok(Self {
            layers: file.required(&key("block_count"), 1..=1024)?,
            hidden,
            heads,
            kv_heads,
            head_width,
            feed_forward: file.required(&key("feed_forward_length"), 1..=1_048_576)?,
            vocabulary,
            context,
            norm_epsilon: file.fraction(&key("attention.layer_norm_rms_epsilon"), 1e-5)?,
            rope_base: file.fraction(&key("rope.freq_base"), 10_000.0)?,
            rope_scale,
            rope_pairs,
        })
    }
}
