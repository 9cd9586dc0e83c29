//! From text to tokens and back, from what the model's file says of its vocabulary.

use std::collections::HashMap;

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

use super::error::ModelError;
use super::gguf::GgufFile;

/// The kinds of token in a GGUF vocabulary that are no pieces of ordinary text.
const CONTROL: usize = 3;
const USER_DEFINED: usize = 4;

/// No vocabulary has a longer token; the grammar's trie cannot hold one that is much longer.
const MAX_TOKEN_BYTES: usize = 1024;

/// How qwen2 and llama 3 cut text into words before pairs are merged; they differ in how many
/// digits stay together.
const WORDS_ONE_DIGIT: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const WORDS_THREE_DIGITS: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// A token that means something to the template, never to ordinary text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpecialToken {
    pub(super) text: String,
    pub(super) id: u32,
}

/// A byte-level BPE tokenizer.
#[derive(Debug)]
pub(super) struct Tokenizer {
    inner: tokenizers::Tokenizer,
    /// The bytes of each token; none for those that are never shown.
    pieces: Vec<Vec<u8>>,
    /// Longest first, so that none hides another.
    special: Vec<SpecialToken>,
    begin: Option<SpecialToken>,
    /// Whether every prompt starts with the begin token.
    add_begin: bool,
    end: SpecialToken,
    /// Every token that ends an answer.
    stops: Vec<u32>,
}

impl Tokenizer {
    /// Builds it from the header of a model whose output has `vocabulary` numbers.
    pub(super) fn read(file: &mut GgufFile, vocabulary: usize) -> Result<Self, ModelError> {
        match file.text("tokenizer.ggml.model") {
            Some("gpt2") => {}
            other => {
                return Err(file.unsupported(format!(
                    "its tokenizer is {}, and only byte-level BPE (gpt2) is known here",
                    other.unwrap_or("missing")
                )));
            }
        }
        let split = file
            .text("tokenizer.ggml.pre")
            .unwrap_or("gpt-2")
            .to_owned();
        let tokens = file.take_texts("tokenizer.ggml.tokens")?;
        let merges = file.take_texts("tokenizer.ggml.merges")?;
        let kinds = file
            .numbers("tokenizer.ggml.token_type")?
            .unwrap_or_default();
        if tokens.len() > vocabulary || tokens.iter().any(|token| token.len() > MAX_TOKEN_BYTES) {
            return Err(file.unsupported("its vocabulary does not fit its tensors"));
        }
        let special = special_tokens(&tokens, &kinds);
        let named = |key: &str| -> Result<Option<SpecialToken>, ModelError> {
            let id = file.number(key, 0..=tokens.len().saturating_sub(1))?;
            Ok(id.and_then(|id| {
                let text = tokens.get(id)?.clone();
                u32::try_from(id).ok().map(|id| SpecialToken { text, id })
            }))
        };
        let begin = named("tokenizer.ggml.bos_token_id")?;
        let end = named("tokenizer.ggml.eos_token_id")?
            .ok_or_else(|| file.unsupported("tokenizer.ggml.eos_token_id is missing"))?;
        let turn_ends = [
            "<|im_end|>",
            "<|eot_id|>",
            "<|end_of_text|>",
            "<|endoftext|>",
        ];
        let stops = special
            .iter()
            .filter(|token| token.id == end.id || turn_ends.contains(&token.text.as_str()))
            .map(|token| token.id)
            .chain([end.id])
            .collect();
        let pieces = pieces(&tokens, &kinds);
        let inner =
            byte_pairs(tokens, &merges, &split).map_err(|reason| file.unsupported(reason))?;
        Ok(Self {
            inner,
            pieces,
            special,
            begin,
            add_begin: file.flag("tokenizer.ggml.add_bos_token").unwrap_or(false),
            end,
            stops,
        })
    }

    /// The tokens of ordinary text: nothing in it is special, whatever it looks like.
    pub(super) fn encode_text(&self, text: &str) -> Result<Vec<u32>, ModelError> {
        self.inner
            .encode_fast(text, false)
            .map(|encoding| encoding.get_ids().to_vec())
            .map_err(|error| ModelError::Prompt(error.to_string()))
    }

    /// The tokens of a rendered template. Special tokens are matched wherever they stand in
    /// full; `shield` is a character that keeps them apart in other people's text (see
    /// `shield.rs`) and is taken out again here.
    pub(super) fn encode_prompt(
        &self,
        rendered: &str,
        shield: char,
    ) -> Result<Vec<u32>, ModelError> {
        let mut ids = Vec::new();
        let mut plain_from = 0;
        let mut at = 0;
        while at < rendered.len() {
            let rest = &rendered[at..];
            if let Some(token) = self.special_at(rest) {
                ids.extend(self.unshielded(&rendered[plain_from..at], shield)?);
                ids.push(token.id);
                at += token.text.len();
                plain_from = at;
            } else {
                at += rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        ids.extend(self.unshielded(&rendered[plain_from..], shield)?);
        match &self.begin {
            Some(begin) if self.add_begin && ids.first() != Some(&begin.id) => {
                ids.insert(0, begin.id);
            }
            _ => {}
        }
        Ok(ids)
    }

    fn unshielded(&self, text: &str, shield: char) -> Result<Vec<u32>, ModelError> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        self.encode_text(&text.replace(shield, ""))
    }

    fn special_at(&self, text: &str) -> Option<&SpecialToken> {
        self.special
            .iter()
            .find(|token| text.starts_with(token.text.as_str()))
    }

    pub(super) fn special(&self) -> &[SpecialToken] {
        &self.special
    }

    /// The text of the token that begins a text; empty where the model has none.
    pub(super) fn begin_text(&self) -> &str {
        self.begin.as_ref().map_or("", |token| token.text.as_str())
    }

    pub(super) fn end(&self) -> &SpecialToken {
        &self.end
    }

    pub(super) fn is_stop(&self, id: u32) -> bool {
        self.stops.contains(&id)
    }

    /// The bytes that a token stands for; none for control tokens and unknown ids.
    pub(super) fn bytes(&self, id: u32) -> &[u8] {
        usize::try_from(id)
            .ok()
            .and_then(|id| self.pieces.get(id))
            .map_or(&[], Vec::as_slice)
    }
}

fn special_tokens(tokens: &[String], kinds: &[usize]) -> Vec<SpecialToken> {
    let mut special: Vec<SpecialToken> = tokens
        .iter()
        .zip(kinds)
        .zip(0..)
        .filter(|((text, kind), _)| [CONTROL, USER_DEFINED].contains(*kind) && !text.is_empty())
        .map(|((text, _), id)| SpecialToken {
            text: text.clone(),
            id,
        })
        .collect();
    special.sort_by_key(|token| std::cmp::Reverse(token.text.len()));
    special
}

/// Byte-level vocabularies write each byte as one printable character.
fn pieces(tokens: &[String], kinds: &[usize]) -> Vec<Vec<u8>> {
    let bytes: HashMap<char, u8> = byte_alphabet()
        .map(|(byte, letter)| (letter, byte))
        .collect();
    tokens
        .iter()
        .enumerate()
        .map(|(id, token)| match kinds.get(id) {
            Some(&CONTROL) => Vec::new(),
            Some(&USER_DEFINED) => token.clone().into_bytes(),
            _ => token
                .chars()
                .flat_map(|letter| match bytes.get(&letter) {
                    Some(byte) => vec![*byte],
                    None => letter.to_string().into_bytes(),
                })
                .collect(),
        })
        .collect()
}

/// Each byte with its letter: printable Latin-1 stands for itself, the others for the letters
/// from U+0100 on, in order.
pub(super) fn byte_alphabet() -> impl Iterator<Item = (u8, char)> {
    let mut next = 0x100_u32;
    (0..=u8::MAX).map(move |byte| {
        let printable = matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        if printable {
            return (byte, char::from(byte));
        }
        let letter = char::from_u32(next).unwrap_or(char::REPLACEMENT_CHARACTER);
        next += 1;
        (byte, letter)
    })
}

fn byte_pairs(
    tokens: Vec<String>,
    merges: &[String],
    split: &str,
) -> Result<tokenizers::Tokenizer, String> {
    let vocabulary: Vocab = tokens.into_iter().zip(0..).collect();
    let mut pairs = Vec::with_capacity(merges.len());
    for merge in merges {
        // The builder writes past its buffer's end where the merged token is unknown.
        let pair = merge
            .split_once(' ')
            .filter(|(left, right)| vocabulary.contains_key(&format!("{left}{right}")))
            .ok_or_else(|| format!("its vocabulary lacks the merge {merge:?}"))?;
        pairs.push((pair.0.to_owned(), pair.1.to_owned()));
    }
    let is_llama_3 = matches!(split, "llama-bpe" | "llama3" | "llama-v3");
    let model = BPE::builder()
        .vocab_and_merges(vocabulary, pairs)
        .ignore_merges(is_llama_3)
        .build()
        .map_err(|error| error.to_string())?;
    let words = |pattern: &str| {
        Split::new(
            SplitPattern::Regex(pattern.to_owned()),
            SplitDelimiterBehavior::Isolated,
            false,
        )
        .map_err(|error| error.to_string())
    };
    let bytes = |use_regex| ByteLevel::new(false, false, use_regex);
    let steps: Vec<PreTokenizerWrapper> = match split {
        "gpt-2" | "gpt2" | "default" => vec![bytes(true).into()],
        "smollm" => vec![Digits::new(true).into(), bytes(true).into()],
        "qwen2" | "deepseek-r1-qwen" => vec![words(WORDS_ONE_DIGIT)?.into(), bytes(false).into()],
        _ if is_llama_3 => vec![words(WORDS_THREE_DIGITS)?.into(), bytes(false).into()],
        other => {
            return Err(format!(
                "its text is split the way of {other}, which is not known here"
            ));
        }
    };
    let mut tokenizer = tokenizers::Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(Sequence::new(steps)));
    if matches!(split, "qwen2" | "deepseek-r1-qwen") {
        tokenizer
            .with_normalizer(Some(NFC))
            .map_err(|error| error.to_string())?;
    }
    Ok(tokenizer)
}

#[cfg(test)]
#[path = "tokenizer_tests.rs"]
mod tokenizer_tests;
