//! Holds a call to the tools' schemas, and an answer to its form: says which tokens may come next, and which must.

use std::fmt;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{Matcher, ParserFactory};
use serde_json::Value;

use super::error::ModelError;
use super::tokenizer::Tokenizer;
use super::tool_schema::{answer_schema, any_answer, call_schema};
use crate::protocol::chat::ReplyForm;
use crate::protocol::tool::ToolSpec;

/// What grammars of one model share. Costs some tenths of a second to make.
pub(super) struct GrammarMaker {
    factory: ParserFactory,
}

impl fmt::Debug for GrammarMaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrammarMaker").finish_non_exhaustive()
    }
}

impl GrammarMaker {
    pub(super) fn new(tokenizer: Arc<Tokenizer>, vocabulary: usize) -> Result<Self, ModelError> {
        let vocabulary = u32::try_from(vocabulary).map_err(grammar_error)?;
        let mut words: Vec<Vec<u8>> = (0..vocabulary)
            .map(|id| tokenizer.bytes(id).to_vec())
            .collect();
        for token in tokenizer.special() {
            if let Some(word) = usize::try_from(token.id)
                .ok()
                .and_then(|id| words.get_mut(id))
            {
                // The mark of a special token: no JSON text has this byte.
                *word = [&[TokTrie::SPECIAL_TOKEN_MARKER], token.text.as_bytes()].concat();
            }
        }
        let trie = TokTrie::from(&TokRxInfo::new(vocabulary, tokenizer.end().id), &words);
        let environment: TokEnv = Arc::new(Environment { tokenizer, trie });
        let mut factory = ParserFactory::new_simple(&environment).map_err(grammar_error)?;
        factory.quiet();
        Ok(Self { factory })
    }

    /// The grammar of one call of any of these tools. A tool whose schema is beyond what
    /// grammars can say keeps its name and takes any object; the run checks it anyway.
    pub(super) fn for_tools(&self, tools: &[ToolSpec]) -> Result<ReplyGrammar, ModelError> {
        if let Ok(grammar) = self.compile(tools, &[]) {
            return Ok(grammar);
        }
        let loose: Vec<&str> = tools
            .iter()
            .filter(|tool| self.compile(std::slice::from_ref(*tool), &[]).is_err())
            .map(|tool| tool.name.as_str())
            .collect();
        tracing::warn!(tools = ?loose, "schemas that no grammar can hold the model to");
        self.compile(tools, &loose)
    }

    /// The grammar of an answer of this form; none where it is no JSON text. One whose schema is
    /// beyond what grammars can say is any JSON; the run checks it anyway.
    pub(super) fn for_answer(&self, form: &ReplyForm) -> Result<Option<ReplyGrammar>, ModelError> {
        let Some(schema) = answer_schema(form) else {
            return Ok(None);
        };
        let grammar = self.of_schema(schema).or_else(|error| {
            tracing::warn!(%error, "a demanded form that no grammar can hold the model to");
            self.of_schema(any_answer())
        });
        grammar.map(Some)
    }

    fn compile(&self, tools: &[ToolSpec], loose: &[&str]) -> Result<ReplyGrammar, ModelError> {
        self.of_schema(call_schema(tools, loose))
    }

    fn of_schema(&self, schema: Value) -> Result<ReplyGrammar, ModelError> {
        let grammar = TopLevelGrammar::from_json_schema(schema);
        let parser = self.factory.create_parser(grammar).map_err(grammar_error)?;
        Ok(ReplyGrammar {
            matcher: Matcher::new(Ok(parser)),
        })
    }
}

/// Where one reply stands in its grammar.
pub(super) struct ReplyGrammar {
    matcher: Matcher,
}

impl fmt::Debug for ReplyGrammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyGrammar").finish_non_exhaustive()
    }
}

impl ReplyGrammar {
    /// The tokens that may come next.
    pub(super) fn allowed(&mut self) -> Result<SimpleVob, ModelError> {
        self.matcher.compute_mask().map_err(grammar_error)
    }

    /// Goes on by a token.
    pub(super) fn accept(&mut self, id: u32) -> Result<(), ModelError> {
        self.matcher.consume_token(id).map_err(grammar_error)
    }

    /// The tokens that can be nothing else; the grammar goes on by them.
    pub(super) fn forced(&mut self) -> Vec<u32> {
        if self.is_complete() {
            return Vec::new();
        }
        self.matcher.consume_ff_tokens()
    }

    /// Whether the reply is whole and nothing may follow.
    pub(super) fn is_complete(&self) -> bool {
        self.matcher.is_stopped()
    }
}

fn grammar_error(error: impl fmt::Display) -> ModelError {
    // Verbose errors carry the whole grammar; the first line says what is wrong.
    let text = error.to_string();
    ModelError::Grammar(text.lines().next().unwrap_or_default().to_owned())
}

/// The tokenizer as llguidance sees it.
struct Environment {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.tokenizer
                .encode_text(text)
                .unwrap_or_else(|_| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }
}
