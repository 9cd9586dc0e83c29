//! Keys and values of what the model has read, kept so that a prompt that begins like an earlier
//! one is read from where they part.

use candle_core::{DType, Device, Result, Tensor};

use super::architecture::Architecture;

/// Room is added in steps of this many tokens.
const STEP: usize = 512;

/// What the model has read, and the keys and values that it made of it.
#[derive(Debug)]
pub(super) struct KvCache {
    tokens: Vec<u32>,
    layers: Vec<(Tensor, Tensor)>,
    kv_heads: usize,
    head_width: usize,
    room: usize,
}

impl KvCache {
    pub(super) fn new(architecture: &Architecture) -> Result<Self> {
        let mut cache = Self {
            tokens: Vec::new(),
            layers: Vec::new(),
            kv_heads: architecture.kv_heads,
            head_width: architecture.head_width,
            room: STEP,
        };
        cache.layers = (0..architecture.layers)
            .map(|_| Ok((cache.blank()?, cache.blank()?)))
            .collect::<Result<_>>()?;
        Ok(cache)
    }

    /// Another cache that has read the first `length` tokens, too.
    pub(super) fn fork(&self, length: usize) -> Result<Self> {
        let mut fork = Self {
            tokens: self.tokens[..length].to_vec(),
            layers: Vec::with_capacity(self.layers.len()),
            room: length.div_ceil(STEP).max(1) * STEP,
            ..*self
        };
        for (keys, values) in &self.layers {
            let copied = |all: &Tensor| -> Result<Tensor> {
                let copy = fork.blank()?;
                if length > 0 {
                    copy.slice_set(&all.narrow(1, 0, length)?.contiguous()?, 1, 0)?;
                }
                Ok(copy)
            };
            let layer = (copied(keys)?, copied(values)?);
            fork.layers.push(layer);
        }
        Ok(fork)
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// For how many tokens there is memory.
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// How many tokens of `prompt` are here already, from its start.
    pub(super) fn common_prefix(&self, prompt: &[u32]) -> usize {
        self.tokens
            .iter()
            .zip(prompt)
            .take_while(|(here, wanted)| here == wanted)
            .count()
    }

    /// Forgets everything after the first `length` tokens.
    pub(super) fn cut_back(&mut self, length: usize) {
        self.tokens.truncate(length);
    }

    /// Makes room for so many more tokens.
    pub(super) fn reserve(&mut self, more: usize) -> Result<()> {
        let needed = self.len() + more;
        if needed <= self.room {
            return Ok(());
        }
        self.room = needed.div_ceil(STEP) * STEP;
        for index in 0..self.layers.len() {
            let (keys, values) = (self.blank()?, self.blank()?);
            keys.slice_set(&self.layers[index].0, 1, 0)?;
            values.slice_set(&self.layers[index].1, 1, 0)?;
            self.layers[index] = (keys, values);
        }
        Ok(())
    }

    /// Puts the keys and values `[key heads, tokens, width]` of one layer behind what is there
    /// and gives back all of them. They count only once `commit` was called: a pass that is
    /// broken off leaves the cache as it was.
    pub(super) fn append(
        &self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let (all_keys, all_values) = &self.layers[layer];
        let start = self.len();
        let end = start + keys.dim(1)?;
        all_keys.slice_set(keys, 1, start)?;
        all_values.slice_set(values, 1, start)?;
        Ok((all_keys.narrow(1, 0, end)?, all_values.narrow(1, 0, end)?))
    }

    /// Every layer has these tokens now.
    pub(super) fn commit(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    fn blank(&self) -> Result<Tensor> {
        let shape = (self.kv_heads, self.room, self.head_width);
        Tensor::zeros(shape, DType::F32, &Device::Cpu)
    }
}
