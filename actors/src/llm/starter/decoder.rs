//! A thin decoder of our own for the llama and qwen2 architectures. Candle's stock models
//! cannot cut their cache back, so that each turn would read the whole conversation again.

use candle_core::{Device, Tensor};

use super::architecture::Architecture;
use super::cache::KvCache;
use super::error::ModelError;
use super::gguf::GgufFile;
use super::ops::{CausalSoftmax, RopeTable};
use super::weights::{Layer, Weights};

/// A prompt is read in pieces of this many tokens. Larger ones are no faster on a processor
/// (candle changes to another, slower kernel at 32) and make Stop wait longer.
pub(super) const CHUNK: usize = 31;

/// So many conversations are remembered. A turn asks the model for a plan, an answer and a title,
/// each time about something else.
const REMEMBERED: usize = 3;

/// A loaded model, and what it has read so far.
#[derive(Debug)]
pub(super) struct Decoder {
    architecture: Architecture,
    weights: Weights,
    rope: RopeTable,
    /// The one that is read on.
    cache: KvCache,
    /// Those before it, the latest last. With the newest prompt they take the room of one window
    /// at the most.
    earlier: Vec<KvCache>,
    window: usize,
}

impl Decoder {
    /// Loads the weights. The window is the model's own, or `window` where that is less.
    pub(super) fn load(file: &mut GgufFile, window: usize) -> Result<Self, ModelError> {
        let architecture = Architecture::of(file)?;
        let weights = Weights::read(file, &architecture)?;
        let window = window.min(architecture.context);
        Ok(Self {
            rope: RopeTable::new(&architecture, &weights.rope_factors, window),
            cache: KvCache::new(&architecture)?,
            earlier: Vec::new(),
            weights,
            window,
            architecture,
        })
    }

    /// How many tokens fit, prompt and answer together.
    pub(super) fn window(&self) -> usize {
        self.window
    }

    pub(super) fn vocabulary(&self) -> usize {
        self.architecture.vocabulary
    }

    /// Goes on from what was read that begins most like `prompt`; gives back how many tokens need
    /// not be read again. The last one always is, since its logits are wanted.
    pub(super) fn keep_prefix(&mut self, prompt: &[u32]) -> Result<usize, ModelError> {
        let shared = |cache: &KvCache| {
            cache
                .common_prefix(prompt)
                .min(prompt.len().saturating_sub(1))
        };
        let nearest = (0..self.earlier.len()).max_by_key(|at| shared(&self.earlier[*at]));
        if let Some(at) = nearest
            && shared(&self.earlier[at]) > shared(&self.cache)
        {
            let cache = self.earlier.remove(at);
            self.earlier.push(std::mem::replace(&mut self.cache, cache));
        }
        let kept = shared(&self.cache);
        // What shares little is about something else, which may be gone on with later.
        if kept * 2 < self.cache.len() {
            let fork = self.cache.fork(kept)?;
            self.earlier.push(std::mem::replace(&mut self.cache, fork));
        }
        self.cache.cut_back(kept);
        while !self.earlier.is_empty()
            && (self.earlier.len() >= REMEMBERED
                || self.earlier.iter().map(KvCache::room).sum::<usize>() + prompt.len()
                    > self.window)
        {
            self.earlier.remove(0);
        }
        Ok(kept)
    }

    /// Reads more tokens and gives back the logits that follow the last of them. Between
    /// layers it asks `cancelled`; a pass that was broken off changes nothing.
    pub(super) fn forward(
        &mut self,
        tokens: &[u32],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, ModelError> {
        let start = self.cache.len();
        if tokens.is_empty() || start + tokens.len() > self.window {
            return Err(ModelError::Compute(format!(
                "{} tokens at position {start} do not fit the window of {}",
                tokens.len(),
                self.window
            )));
        }
        self.cache.reserve(tokens.len())?;
        let ids = Tensor::new(tokens, &Device::Cpu)?;
        let mut rows = self.weights.embedding.embedding(&ids)?;
        for (index, layer) in self.weights.layers.iter().enumerate() {
            if cancelled() {
                return Err(ModelError::Cancelled);
            }
            let normed = rows.apply_op1_no_bwd(&layer.attention_norm)?;
            rows = (rows + self.attend(index, layer, &normed)?)?;
            let normed = rows.apply_op1_no_bwd(&layer.feed_forward_norm)?;
            let gate = layer.gate.forward(&normed)?.silu()?;
            let inner = (gate * layer.up.forward(&normed)?)?;
            rows = (rows + layer.down.forward(&inner)?)?;
        }
        self.cache.commit(tokens);
        let last = rows.narrow(0, tokens.len() - 1, 1)?.contiguous()?;
        let last = last.apply_op1_no_bwd(&self.weights.norm)?;
        let logits = candle_core::Module::forward(&self.weights.head, &last)?;
        Ok(logits.flatten_all()?.to_vec1()?)
    }

    /// Grouped-query attention of the new rows over everything read so far. Query heads that
    /// share a key head are laid one below the other, so that no key is copied.
    fn attend(&self, index: usize, layer: &Layer, normed: &Tensor) -> Result<Tensor, ModelError> {
        let Architecture {
            heads,
            kv_heads,
            head_width: width,
            ..
        } = self.architecture;
        let group = heads / kv_heads;
        let tokens = normed.dim(0)?;
        let start = self.cache.len();

        let queries = layer
            .query
            .forward(normed)?
            .reshape((tokens, heads, width))?;
        let keys = layer
            .key
            .forward(normed)?
            .reshape((tokens, kv_heads, width))?;
        let values = layer
            .value
            .forward(normed)?
            .reshape((tokens, kv_heads, width))?;
        queries.inplace_op1(&self.rope.at(start))?;
        keys.inplace_op1(&self.rope.at(start))?;

        let (keys, values) = self.cache.append(
            index,
            &keys.transpose(0, 1)?.contiguous()?,
            &values.transpose(0, 1)?.contiguous()?,
        )?;
        let queries = queries
            .reshape((tokens, kv_heads, group, width))?
            .permute((1, 2, 0, 3))?
            .contiguous()?
            .reshape((kv_heads, group * tokens, width))?;
        let scores = queries.matmul(&keys.transpose(1, 2)?)?;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a head's width is far below 2^24"
        )]
        scores.inplace_op1(&CausalSoftmax {
            scale: 1.0 / (width as f32).sqrt(),
            tokens,
            start,
        })?;
        let mixed = scores
            .matmul(&values)?
            .reshape((kv_heads, group, tokens, width))?
            .permute((2, 0, 1, 3))?
            .contiguous()?
            .reshape((tokens, heads * width))?;
        Ok(layer.output.forward(&mixed)?)
    }
}
