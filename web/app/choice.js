// Who answers in the open session, or in the next new one, and by which model: as it was chosen,
// and what comes of that now.

/** @import { BackendStatus, ModelInfo, ProfileModel } from '../state/wire.js' */

import { backendOf, defaultProfile, expectedModel } from '../state/service.js';
import {
  chosenModel, chosenProfile, isLoaded, openId, profileId, profiles, rowOf, sessionModel, status,
} from './signals.js';

/**
 * @returns {{ profile_id: string | null, profile: ProfileModel | null, chosen: string | null, backend:
 *  BackendStatus | null, model: ModelInfo | null }}
 *   `chosen` is the model that was chosen, `model` the one that a run would have
 */
export function choice() {
  const id = openId.get();
  const listed = rowOf(id);
  const wished = profileId.get() ?? listed?.profile_id ?? chosenProfile.get();
  const profile = profiles.get().find((item) => item.profile_id === wished)
    ?? (id === null ? defaultProfile(profiles.get()) : null);
  const chosen = id === null ? chosenModel.get() : isLoaded.get() ? sessionModel.get() : listed?.model ?? null;
  return {
    profile_id: profile?.profile_id ?? wished, profile, chosen,
    backend: backendOf(status.get(), chosen), model: expectedModel(status.get(), profile, chosen),
  };
}
