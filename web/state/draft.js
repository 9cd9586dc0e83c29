// What was asked about a draft is told of that draft alone.

/**
 * Null where the draft was changed before the answer came, a refusal too.
 * @template T
 * @param {() => unknown} draft as it is now
 * @param {() => Promise<T>} request
 * @returns {Promise<T | null>}
 */
export async function ofSame(draft, request) {
  const asked = JSON.stringify(draft());
  const isSame = () => JSON.stringify(draft()) === asked;
  try {
    const answer = await request();
    return isSame() ? answer : null;
  } catch (error) {
    if (isSame()) throw error;
    return null;
  }
}
