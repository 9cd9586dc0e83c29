// Parts of the page that are loaded when they are first needed.

/** A browser that failed to load a module may keep that in mind: another try has another address. */
let failures = 0;

/** @param {URL} address of a module beside this one, as the page is served @returns {Promise<any>} */
export async function loadPart(address) {
  if (failures > 0) address.searchParams.set('again', String(failures));
  try {
    return await import(address.href);
  } catch (error) {
    failures += 1;
    throw error;
  }
}
