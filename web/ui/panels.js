// What stands over the page and is opened now and then, and what only newcomers or the invited see: a file of its
// own, loaded with the first of it.

import './account.js';
import './context.js';
import './diagram.js';
import './file.js';
import './files.js';
import './first_steps.js';
import './import.js';
import './invitation.js';
import './memory.js';
import './palette.js';
import './people.js';
import './permissions.js';
import './run_panel.js';
import './runs.js';
import './setup.js';
import './share.js';
import './tags.js';

export { offerPicture } from './remote_picture.js';
