// A file of its own in `dist/`: it is as large as half of all the rest.

import temml from 'temml';

export const math = temml.render;
