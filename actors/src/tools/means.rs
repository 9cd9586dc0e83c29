//! What the person whose session it is has for a call, where there are several people.

use super::{ToolError, ToolResult};

/// See the module. The default is that of one's own machine: nobody counts.
#[derive(Clone, Debug, Default)]
pub struct Means {
    /// The user id that their commands run under; none where everybody's run under the same.
    pub uid: Option<u32>,
    /// Why no command of theirs can run.
    pub no_commands: Option<String>,
    /// Why nothing may be added to their files.
    pub full: Option<String>,
}

impl Means {
    /// Refuses a call that adds to their files where there is no room.
    pub(crate) fn check_room(&self) -> ToolResult<()> {
        self.full.clone().map_or(Ok(()), |why| Err(ToolError(why)))
    }

    /// Refuses a command: it may add to their files, too.
    pub(crate) fn check_command(&self) -> ToolResult<()> {
        self.check_room()?;
        let why = self.no_commands.clone();
        why.map_or(Ok(()), |why| Err(ToolError(why)))
    }
}
