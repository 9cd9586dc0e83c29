//! A model's tensors, in memory.

use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{Device, Module, Tensor};

use super::architecture::Architecture;
use super::error::ModelError;
use super::gguf::GgufFile;
use super::ops::RmsNorm;

/// A matrix to multiply by, with what is added after it.
#[derive(Debug)]
pub(super) struct Linear {
    matrix: QMatMul,
    bias: Option<Tensor>,
}

impl Linear {
    pub(super) fn forward(&self, rows: &Tensor) -> candle_core::Result<Tensor> {
        let product = self.matrix.forward(rows)?;
        match &self.bias {
            Some(bias) => product.broadcast_add(bias),
            None => Ok(product),
        }
    }
}

/// One block of attention and feed-forward.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) attention_norm: RmsNorm,
    pub(super) query: Linear,
    pub(super) key: Linear,
    pub(super) value: Linear,
    pub(super) output: Linear,
    pub(super) feed_forward_norm: RmsNorm,
    pub(super) gate: Linear,
    pub(super) up: Linear,
    pub(super) down: Linear,
}

/// Everything that the decoder multiplies by.
#[derive(Debug)]
pub(super) struct Weights {
    pub(super) embedding: Arc<QTensor>,
    pub(super) layers: Vec<Layer>,
    pub(super) norm: RmsNorm,
    /// The embedding itself where the model has no matrix of its own for its output.
    pub(super) head: QMatMul,
    /// How much each frequency of the rotation is slowed down; empty for none.
    pub(super) rope_factors: Vec<f32>,
}

impl Weights {
    /// Reads all tensors, checking each one's shape.
    pub(super) fn read(
        file: &mut GgufFile,
        architecture: &Architecture,
    ) -> Result<Self, ModelError> {
        let hidden = architecture.hidden;
        let vocabulary = [architecture.vocabulary, hidden];
        let embedding = Arc::new(file.matrix("token_embd.weight", &vocabulary)?);
        let head = if file.shape("output.weight").is_some() {
            QMatMul::from_qtensor(file.matrix("output.weight", &vocabulary)?)?
        } else {
            QMatMul::from_arc(Arc::clone(&embedding))?
        };
        let rope_factors = match file.shape("rope_freqs.weight") {
            Some(_) => vector(file, "rope_freqs.weight", architecture.head_width / 2)?,
            None => Vec::new(),
        };
        let layers = (0..architecture.layers)
            .map(|index| Layer::read(file, architecture, index))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            embedding,
            layers,
            norm: norm(file, "output_norm.weight", architecture)?,
            head,
            rope_factors,
        })
    }
}

impl Layer {
    fn read(
        file: &mut GgufFile,
        architecture: &Architecture,
        index: usize,
    ) -> Result<Self, ModelError> {
        let hidden = architecture.hidden;
        let queries = architecture.heads * architecture.head_width;
        let keys = architecture.kv_heads * architecture.head_width;
        let inner = architecture.feed_forward;
        let mut read = |name: &str, rows: usize, columns: usize| {
            linear(file, &format!("blk.{index}.{name}"), rows, columns)
        };
        Ok(Self {
            query: read("attn_q", queries, hidden)?,
            key: read("attn_k", keys, hidden)?,
            value: read("attn_v", keys, hidden)?,
            output: read("attn_output", hidden, queries)?,
            gate: read("ffn_gate", inner, hidden)?,
            up: read("ffn_up", inner, hidden)?,
            down: read("ffn_down", hidden, inner)?,
            attention_norm: norm(file, &format!("blk.{index}.attn_norm.weight"), architecture)?,
            feed_forward_norm: norm(file, &format!("blk.{index}.ffn_norm.weight"), architecture)?,
        })
    }
}

fn linear(
    file: &mut GgufFile,
    name: &str,
    rows: usize,
    columns: usize,
) -> Result<Linear, ModelError> {
    let matrix = file.matrix(&format!("{name}.weight"), &[rows, columns])?;
    let bias_name = format!("{name}.bias");
    let bias = match file.shape(&bias_name) {
        Some(_) => Some(Tensor::new(vector(file, &bias_name, rows)?, &Device::Cpu)?),
        None => None,
    };
    Ok(Linear {
        matrix: QMatMul::from_qtensor(matrix)?,
        bias,
    })
}

fn norm(
    file: &mut GgufFile,
    name: &str,
    architecture: &Architecture,
) -> Result<RmsNorm, ModelError> {
    Ok(RmsNorm {
        weight: vector(file, name, architecture.hidden)?,
        epsilon: architecture.norm_epsilon,
    })
}

fn vector(file: &mut GgufFile, name: &str, length: usize) -> Result<Vec<f32>, ModelError> {
    let tensor = file.tensor(name, &[length])?;
    Ok(tensor.dequantize(&Device::Cpu)?.to_vec1::<f32>()?)
}
