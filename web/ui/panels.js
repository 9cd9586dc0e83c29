// What stands over the page and is opened now and then, and what only newcomers see: a file of its
// own, loaded with the first of it.

import './account.js';
import './context.js';
import './file.js';
import './files.js';
import './first_steps.js';
import './import.js';
import './memory.js';
import './people.js';
import './permissions.js';
import './run_panel.js';
import './setup.js';
import './share.js';
import './tags.js';
