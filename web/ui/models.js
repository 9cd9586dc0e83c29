// The models that can be chosen, in words.

/** @import { BackendStatus, ModelInfo, ProfileModel } from '../state/wire.js' */

import { status } from '../app/signals.js';
import { t } from '../i18n/index.js';
import { expectedModel, isCalled, misfit, readyBackends } from '../state/service.js';
import { formatBytes, formatTokens } from './format.js';

/**
 * @typedef {{ name: string | null, label: string, notes: string, problem: string | null }}
 *  ModelChoice `name` is null for the profile's own
 */

/**
 * The profile's own model, those that the backends have, and the one that was chosen where none has it.
 * @param {{ profile: ProfileModel | null, chosen: string | null, model: ModelInfo | null }} now
 * @returns {ModelChoice[]}
 */
export function modelChoices({ profile, chosen, model }) {
  const backends = readyBackends(status.get());
  const own = expectedModel(status.get(), profile);
  /** @type {ModelChoice[]} */
  const choices = [{
    name: null, label: t('choice.own'), notes: own?.name ?? '',
    problem: own === null ? t('header.no_model') : problemOf(own, profile),
  }];
  for (const backend of backends) {
    for (const found of backend.models) {
      // Of two that are called the same a run finds the first.
      if (choices.some(({ name }) => name === found.name)) continue;
      // What was chosen may leave out its tag.
      const name = chosen !== null && isCalled(found, chosen) ? chosen : found.name;
      choices.push({
        name, label: found.name, notes: notesOf(found, backends.length > 1 ? backend : null),
        problem: problemOf(found, profile),
      });
    }
  }
  if (chosen !== null && choices.every(({ name }) => name !== chosen)) {
    choices.push({
      name: chosen, label: chosen, notes: '',
      problem: model === null ? t('header.no_model') : t('choice.gone', { name: model.name }),
    });
  }
  return choices;
}

/** @param {ModelInfo} model @param {BackendStatus | null} backend */
function notesOf(model, backend) {
  const can = /** @type {const} */ (['tools', 'vision', 'thinking']).filter((ability) => model[ability] === true);
  return [
    ...(backend === null ? [] : [t(`backend.${backend.kind}`)]),
    ...(model.bytes === undefined ? [] : [formatBytes(model.bytes)]),
    ...(model.context_window === undefined ? [] : [t('choice.window', { n: formatTokens(model.context_window) })]),
    ...can.map((ability) => t(`choice.can.${ability}`)),
  ].join(' · ');
}

/** @param {ModelInfo} model @param {ProfileModel | null} profile */
function problemOf(model, profile) {
  const why = misfit(model, profile);
  return why === null ? null : t(why === 'demo' ? 'header.demo_hint' : 'choice.no_tools');
}
