//! A loaded model that answers requests: prompt, reading, choosing, and the reply as it comes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::decoder::{CHUNK, Decoder};
use super::detokenizer::Detokenizer;
use super::engine::{Emit, Model};
use super::error::ModelError;
use super::gguf::GgufFile;
use super::grammar::{GrammarMaker, ReplyGrammar};
use super::prompt;
use super::reply::ReplyParser;
use super::sampler::{Sampler, Sampling};
use super::template::ChatTemplate;
use super::tokenizer::Tokenizer;
use super::tool_schema::TAUGHT_CALL_BEGINS;
use crate::llm::decode::CALLING_EVERY;
use crate::protocol::chat::{ChatDelta, ChatRequest, FinishReason, Usage};

/// The window is never larger than this, whatever the model was made for: what a processor
/// reads in several minutes is of no use to the person who waits.
pub(super) const MAX_WINDOW: usize = 16_384;

/// Room that must be left for an answer.
const MIN_ANSWER: usize = 16;

/// Where a request sets no limit of its own.
const DEFAULT_ANSWER: usize = 4096;

/// Below so many bytes a model is so small that it repeats itself without help.
const TINY_BYTES: u64 = 512 << 20;
const TINY_PENALTY: f32 = 1.15;

/// A model in memory.
#[derive(Debug)]
pub(super) struct ChatModel {
    decoder: Decoder,
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    /// Made for the first request that offers tools or demands a form.
    grammars: Option<GrammarMaker>,
    repeat_penalty: f32,
}

impl ChatModel {
    /// Loads the file. Takes seconds for a large one.
    pub(super) fn load(path: &Path) -> Result<Self, ModelError> {
        let mut file = GgufFile::open(path)?;
        let source = file.text("tokenizer.chat_template").map(str::to_owned);
        let size = std::fs::metadata(path).map_or(u64::MAX, |metadata| metadata.len());
        let decoder = Decoder::load(&mut file, MAX_WINDOW)?;
        let tokenizer = Tokenizer::read(&mut file, decoder.vocabulary())?;
        let (begin, end) = (tokenizer.begin_text(), tokenizer.end().text.as_str());
        Ok(Self {
            template: ChatTemplate::new(source.as_deref(), begin, end)?,
            tokenizer: Arc::new(tokenizer),
            decoder,
            grammars: None,
            repeat_penalty: if size < TINY_BYTES { TINY_PENALTY } else { 1.0 },
        })
    }

    /// Answers a request, choosing by this seed. What comes goes through `emit`, the end of it
    /// too; `cancelled` is asked all the while.
    pub(super) fn answer_seeded(
        &mut self,
        request: &ChatRequest,
        seed: u64,
        emit: Emit<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), ModelError> {
        let window = match usize::try_from(request.context_window) {
            Ok(asked) if asked > 0 => asked.min(self.decoder.window()),
            _ => self.decoder.window(),
        };
        let prompt = prompt::tokens(request, &self.template, &self.tokenizer)?;
        let prompt_tokens = prompt.len();
        let mut answer = self.begin_answer(request, seed)?;
        if prompt.len() + MIN_ANSWER > window {
            return Err(ModelError::Overflow {
                tokens: prompt_tokens,
                window,
            });
        }
        let limit = request
            .max_output_tokens
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(DEFAULT_ANSWER)
            .min(window - prompt_tokens);

        let mut logits = self.read_prompt(&prompt, emit, cancelled)?;
        let mut told = Instant::now();
        let finish = loop {
            if let Some(delta) = answer.take(told.elapsed()) {
                told = Instant::now();
                if !emit(delta) {
                    return Err(ModelError::Cancelled);
                }
            }
            if answer.is_complete() {
                break FinishReason::Stop;
            }
            if answer.tokens >= limit {
                break FinishReason::Length;
            }
            let Some(next) = answer.choose(&mut logits, &self.tokenizer)? else {
                break FinishReason::Stop;
            };
            // Forced tokens may go past the limit; they may not go past the window.
            if prompt_tokens + answer.tokens >= window {
                break FinishReason::Length;
            }
            if answer.sampler.is_stuck() {
                break FinishReason::Other;
            }
            if answer.is_complete() {
                continue;
            }
            for chunk in next.chunks(CHUNK) {
                logits = self.decoder.forward(chunk, cancelled)?;
            }
        };
        let tokens = answer.tokens;
        for delta in answer.finish() {
            emit(delta);
        }
        let usage = Usage {
            prompt_tokens: u32::try_from(prompt_tokens).unwrap_or(u32::MAX),
            completion_tokens: u32::try_from(tokens).unwrap_or(u32::MAX),
            cached_tokens: None,
        };
        emit(ChatDelta::Done {
            finish,
            usage: Some(usage),
        });
        Ok(())
    }

    /// Reads what the cache does not hold yet and tells how far it is.
    fn read_prompt(
        &mut self,
        prompt: &[u32],
        emit: Emit<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, ModelError> {
        let mut read = self.decoder.keep_prefix(prompt)?;
        let mut logits = Vec::new();
        for chunk in prompt[read..].chunks(CHUNK) {
            let progress = ChatDelta::Prefill {
                read: u32::try_from(read).unwrap_or(u32::MAX),
                total: u32::try_from(prompt.len()).unwrap_or(u32::MAX),
            };
            if !emit(progress) {
                return Err(ModelError::Cancelled);
            }
            logits = self.decoder.forward(chunk, cancelled)?;
            read += chunk.len();
        }
        Ok(logits)
    }

    fn begin_answer(&mut self, request: &ChatRequest, seed: u64) -> Result<Generation, ModelError> {
        let tools = if request.tools.is_empty() {
            None
        } else {
            let grammar = self.grammars()?.for_tools(&request.tools)?;
            let names = request.tools.iter().map(|tool| tool.name.as_str());
            Some((grammar, ReplyParser::new(names)))
        };
        let form = match &request.form {
            // With tools a reply may be a call.
            Some(form) if tools.is_none() => self.grammars()?.for_answer(form)?,
            _ => None,
        };
        let sampling = Sampling {
            temperature: request.temperature,
            repeat_penalty: self.repeat_penalty,
        };
        let mut special = self.tokenizer.special().iter();
        let mark = special.find(|token| token.text == TAUGHT_CALL_BEGINS);
        let mut sampler = Sampler::new(sampling, seed);
        if form.is_some() {
            // JSON repeats its quotes and braces by nature.
            sampler.allow_repeats();
        }
        Ok(Generation {
            sampler,
            detokenizer: Detokenizer::default(),
            tools,
            form,
            mark: mark.map(|token| token.id),
            text: String::new(),
            tokens: 0,
        })
    }

    fn grammars(&mut self) -> Result<&GrammarMaker, ModelError> {
        let maker = match self.grammars.take() {
            Some(maker) => maker,
            None => GrammarMaker::new(Arc::clone(&self.tokenizer), self.decoder.vocabulary())?,
        };
        Ok(self.grammars.insert(maker))
    }
}

impl Model for ChatModel {
    fn answer(
        &mut self,
        request: &ChatRequest,
        emit: Emit<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), ModelError> {
        let (seed, _) = uuid::Uuid::new_v4().as_u64_pair();
        self.answer_seeded(request, seed, emit, cancelled)
    }
}

/// One answer as it is made.
#[derive(Debug)]
struct Generation {
    sampler: Sampler,
    detokenizer: Detokenizer,
    /// With tools: what holds a call to them, and what reads the reply.
    tools: Option<(ReplyGrammar, ReplyParser)>,
    /// What holds an answer to the form that is demanded of it.
    form: Option<ReplyGrammar>,
    /// The token that a model may have been taught to begin a call with.
    mark: Option<u32>,
    /// Text that the user has not been sent yet.
    text: String,
    tokens: usize,
}

impl Generation {
    /// Chooses the next token and adds those that must follow; none where the model ends its
    /// answer. Text is free, as the model was taught to write it, unless a form is demanded of it; a
    /// call is held to the tools.
    fn choose(
        &mut self,
        logits: &mut [f32],
        tokenizer: &Tokenizer,
    ) -> Result<Option<Vec<u32>>, ModelError> {
        let nothing = || ModelError::Compute("no token can be chosen".to_owned());
        let calling = self
            .tools
            .as_mut()
            .filter(|(_, reply)| reply.call().is_some())
            .map(|(grammar, _)| grammar);
        let Some(grammar) = calling.or(self.form.as_mut()) else {
            let id = self.sampler.choose(logits, None).ok_or_else(nothing)?;
            if tokenizer.is_stop(id) {
                return Ok(None);
            }
            self.say(id, tokenizer);
            let mut next = vec![id];
            next.extend(self.begin_call(tokenizer)?);
            return Ok(Some(next));
        };
        let mask = grammar.allowed()?;
        let id = self
            .sampler
            .choose(logits, Some(&|id| mask.is_allowed(id)))
            .ok_or_else(nothing)?;
        if tokenizer.is_stop(id) {
            // The grammar lets it: what was written may be all.
            return Ok(None);
        }
        grammar.accept(id)?;
        let mut next = vec![id];
        next.extend(grammar.forced());
        for id in &next {
            self.say(*id, tokenizer);
        }
        Ok(Some(next))
    }

    /// Where the last token began a call: the tokens that must follow.
    fn begin_call(&mut self, tokenizer: &Tokenizer) -> Result<Vec<u32>, ModelError> {
        let Some((grammar, reply)) = &mut self.tools else {
            return Ok(Vec::new());
        };
        let Some(written) = reply.call() else {
            return Ok(Vec::new());
        };
        // The mark's last token may hold more; a call without a mark has named its tool.
        for id in tokenizer.encode_text(written)? {
            if grammar.accept(id).is_err() {
                self.text.push_str(&reply.read_as_text());
                return Ok(Vec::new());
            }
        }
        let forced = grammar.forced();
        // JSON repeats its quotes and braces by nature.
        self.sampler.allow_repeats();
        for id in &forced {
            self.say(*id, tokenizer);
        }
        Ok(forced)
    }

    fn say(&mut self, id: u32, tokenizer: &Tokenizer) {
        self.tokens += 1;
        self.sampler.said(id);
        let written = self.detokenizer.push(tokenizer.bytes(id));
        let Some((_, reply)) = &mut self.tools else {
            self.text.push_str(&written);
            return;
        };
        // As a control token the mark has no bytes.
        let is_mark = self.mark == Some(id) && !written.ends_with(TAUGHT_CALL_BEGINS);
        self.text.push_str(&reply.push(&written));
        if is_mark {
            self.text.push_str(&reply.push(TAUGHT_CALL_BEGINS));
        }
    }

    /// What the user has not been told yet, this long after the last time.
    fn take(&mut self, quiet: Duration) -> Option<ChatDelta> {
        let tools = self.tools.as_ref();
        let is_calling = tools.is_some_and(|(_, reply)| reply.call().is_some());
        let calling = is_calling && quiet >= CALLING_EVERY;
        let text = self.take_text().map(ChatDelta::Text);
        text.or(calling.then_some(ChatDelta::Calling))
    }

    fn take_text(&mut self) -> Option<String> {
        (!self.text.is_empty()).then(|| std::mem::take(&mut self.text))
    }

    /// Whether a call is whole: it ends the answer, and its result begins the next. Or an answer that
    /// has its form.
    fn is_complete(&self) -> bool {
        let mut called = self.tools.iter();
        called.any(|(grammar, reply)| reply.call().is_some() && grammar.is_complete())
            || self.form.as_ref().is_some_and(ReplyGrammar::is_complete)
    }

    /// What is left to send when the model has ended.
    fn finish(mut self) -> Vec<ChatDelta> {
        let rest = self.detokenizer.finish();
        let Some((_, mut reply)) = self.tools.take() else {
            self.text.push_str(rest);
            return self.take_text().map(ChatDelta::Text).into_iter().collect();
        };
        self.text.push_str(&reply.push(rest));
        let text = self.take_text().map(ChatDelta::Text);
        text.into_iter().chain(reply.finish()).collect()
    }
}

#[cfg(test)]
#[path = "chat_model_tests.rs"]
mod chat_model_tests;
