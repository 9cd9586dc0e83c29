//! What Navi says to a person in words of her own, as a code and what stands in it: the page says
//! it in its reader's language. The English is here, and a test of the page holds its own to it.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A closed list of codes, each with its English, in which `{name}` is what stands there.
macro_rules! codes {
    ($(#[$of:meta])* $codes:ident { $($code:ident => $english:literal,)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $codes { $($code,)* }

        impl $codes {
            /// What it says.
            #[must_use]
            pub fn english(self) -> &'static str {
                match self { $(Self::$code => $english,)* }
            }
        }
    };
}

codes! {
    /// What a detail of a request is.
    Label {
        Address => "address",
        Arguments => "arguments",
        Changes => "changes",
        Command => "command",
        Directory => "directory",
        File => "file",
        From => "from",
        Goes => "what goes",
        Held => "what is held",
        Host => "host",
        NewKey => "key of the new host",
        Path => "path",
        Program => "program",
        Query => "query",
        Remembered => "what is remembered",
        Sandbox => "sandbox",
        Server => "server",
        Service => "service",
        Time => "time",
        TimeLimit => "time limit",
        To => "to",
        WhyItAsks => "why it asks",
    }
}

codes! {
    /// What a request says beside that: what would be done, what a rule would cover, why it is
    /// asked about, and what stands in details. And what notices say.
    PhraseCode {
        Call => "call {tool}",
        CallHome => "call {service} in the smart home",
        CallHomeFor => "call {service} for {entities} in the smart home",
        CallMcp => "call {tool} of the MCP server {server}",
        Create => "create `{path}`",
        Delete => "delete `{path}`",
        Download => "download {path} from {host}",
        DownloadUnknown => "download {path} from {host}, a host that is not known yet",
        Edit => "edit `{path}`",
        EndCommand => "end background command {id}",
        Fetch => "read {address}",
        Forget => "forget {fact}",
        Look => "look at `{path}`",
        LookAtHome => "look at the smart home",
        LookAtWorkspace => "look at the workspace",
        Move => "move `{from}` to `{to}`",
        Replace => "replace all of `{path}`",
        Run => "run `{command}`",
        RunOn => "run `{command}` on {host}",
        RunOnUnknown => "run `{command}` on {host}, a host that is not known yet",
        RunOwnTool => "run your tool {tool}",
        Search => "search the web for \"{query}\" with {engine}",
        Upload => "upload {file} to {host}",
        UploadUnknown => "upload {file} to {host}, a host that is not known yet",

        AnyCall => "any call of {tool}",
        AnyMcpCall => "any call of {tool} of the MCP server {server}",
        AnyOwnCall => "any call of {tool} as it is now",
        AnyPage => "any page of {host}",
        AnySearch => "any search with {engine}",
        ChangesHere => "changes to files in this conversation's folder",
        ChangesIn => "changes to files in `{path}`",
        CommandExactly => "`{command}`, word for word",
        CommandOn => "`{command}` on {host}",
        DeletingHere => "deleting files in this conversation's folder",
        DeletingIn => "deleting files in `{path}`",
        DownloadsOf => "downloads of `{path}` from {host}",
        EndingCommands => "ending background commands",
        LookingHere => "looking at this conversation's folder",
        LookingIn => "looking at `{path}`",
        MovingBetween => "moving files from `{from}` to `{to}`",
        MovingIn => "moving files from `{from}` to this conversation's folder",
        MovingOut => "moving files from this conversation's folder to `{to}`",
        UploadsTo => "uploads to `{path}` on {host}",

        AsksFirst => "this session asks before anything is changed",
        ChangesMachine => "it can change things on this machine outside the session's own folder",
        DoesNotComeBack => "what is forgotten does not come back",
        NothingHolds => "nothing holds this command: {reason}",
        ReadOutside => "and this conversation has read text from outside, which may have led to it",
        SendsOut => "it sends something out of this machine",

        AtMost => "at most {seconds} s",
        FenceLifted => "TERMINAL_ALLOWED_COMMANDS is *: commands run outside the sandbox, with Navi's own rights",
        GoesBinary => "{size}, which is no text",
        GoesDirectory => "a directory ({n} inside), {size}",
        GoesLarge => "{size}, which cannot be put back",
        Held => "{files}: where one of these has changed, nothing is run. Whatever else of the workspace the command reads is held against Navi's other calls until you have answered, and not against you, commands in the background and other programs",
        HeldMore => "{files} and {more} more: where one of these has changed, nothing is run. Whatever else of the workspace the command reads is held against Navi's other calls until you have answered, and not against you, commands in the background and other programs",
        HeldNone => "Whatever else of the workspace the command reads is held against Navi's other calls until you have answered, and not against you, commands in the background and other programs",
        Here => "{path} (in this conversation's folder)",
        InBackground => "in the background, until it is ended",
        NotHeld => "none: it may do whatever you may",
        Seconds => "{seconds} s",
        TrustsKey => "{key}\nApproving trusts this key from now on. Compare it with what `ssh-keygen -lf` shows of the host's own key files.",
        Workspace => "the workspace",

        BackendMissing => "the profile's backend {asked} cannot answer now (LLM_BACKEND decides which are there); {model} of {backend} answers instead",
        ChosenMissing => "the model {chosen} that was chosen for this conversation is not there; {model} answers instead",
        DefaultMissing => "the default model {default} is not there; {model} answers instead",
        LeftOut => "the model's window is full: the oldest {n} turns of this conversation were left out of this call",
        LeftOutOne => "the model's window is full: the oldest turn of this conversation was left out of this call",
        NeitherModel => "neither the profile's model {own} nor the default model {default} is there; {model} answers instead",
        OwnMissing => "the profile's model {own} is not there; {model} answers instead",
        ProfileMissing => "the session's profile {gone} is not there any more; {name} answers instead",
        PromptCut => "the model server read only {tokens} tokens of a longer conversation: it cut the prompt to its own window; give it a larger context window, or Navi a smaller one (OLLAMA_NUM_CTX)",
        ReplyCut => "the model reached its limit of tokens in the middle of this answer; continue, and it goes on from there",
        Unfinished => "the model said what it would do and called no tool: nothing was done; say \"continue\", or choose another model",
    }
}

/// Words of Navi's own. They are told in English as they are written out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phrase {
    pub code: PhraseCode,
    /// What stands in it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
}

impl Phrase {
    #[must_use]
    pub fn new<const N: usize>(code: PhraseCode, params: [(&str, String); N]) -> Self {
        let params = params.map(|(name, value)| (name.to_owned(), value));
        Self {
            code,
            params: params.into(),
        }
    }

    /// The same with all that stands in it made fit to be shown.
    #[must_use]
    pub fn shown(self, fit: impl Fn(&str) -> String) -> Self {
        let params = self.params.into_iter();
        Self {
            code: self.code,
            params: params.map(|(name, value)| (name, fit(&value))).collect(),
        }
    }
}

impl From<PhraseCode> for Phrase {
    fn from(code: PhraseCode) -> Self {
        Self::new(code, [])
    }
}

impl fmt::Display for Phrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.code.english();
        // What stands in it is taken as it is, braces and all.
        while let Some((before, rest)) = left.split_once('{') {
            let (name, after) = rest.split_once('}').unwrap_or((rest, ""));
            f.write_str(before)?;
            f.write_str(self.params.get(name).map_or("", String::as_str))?;
            left = after;
        }
        f.write_str(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_phrase_is_not_read_again() {
        let moved = Phrase::new(
            PhraseCode::Move,
            [("from", "{to}".to_owned()), ("to", "b".to_owned())],
        );
        assert_eq!(moved.to_string(), "move `{to}` to `b`");
        let told = serde_json::to_value(&moved).unwrap();
        assert_eq!(
            told,
            serde_json::json!({"code": "move", "params": {"from": "{to}", "to": "b"}})
        );
        let fit = moved.shown(|value| value.replace('{', "("));
        assert_eq!(fit.to_string(), "move `(to}` to `b`");
    }
}
