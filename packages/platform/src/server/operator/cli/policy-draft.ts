import { OperatorError } from '../command.ts'
import { localSigners } from '../connect.ts'
import { draftDocument, toFillIn } from '../policy/draft.ts'
import { inForceOf, personsOf, placeOf, policyViews } from '../policy/nodes.ts'
import { historyOf } from '../policy/past.ts'
import { registryOf } from '../policy/statements.ts'
import { need, type Run } from './typed.ts'

const DAYS = '90'

/** Prints a document that would have allowed the transfers of the last 90 days and all forwards. */
export const draft: Run = async ({ home, values }) => {
  const workspace = need(values, 'workspace')
  const { views } = await policyViews(localSigners(home), workspace)
  const place = { ...placeOf(views), workspace }
  const history = await historyOf(home, place, { days: DAYS })
  const { acts, forwards } = history
  const registry = registryOf(place.mode)
  const inForce = inForceOf(views)
  // If the document listed these keys for the back end, their enrolments would no longer count.
  const persons = personsOf(views)
  const apiKeys = history.apiKeys.filter((key) => !persons.has(key))
  const document = draftDocument({ registry, place, previous: inForce, ...history, apiKeys })
  if (document.rules.length === 0)
    throw new OperatorError(
      `--workspace: the workspace ${workspace} has neither transfers nor wallets: create a wallet first`,
    )
  const missing = toFillIn(document)
  return {
    result: { document, transfers: acts.length, forwards: forwards.length, fill_in: missing },
    text: JSON.stringify(document, null, 2).split('\n'),
    notices: [
      acts.length === 0
        ? `The workspace has no transfers in the last ${DAYS} days: the amounts are examples, so adapt them.`
        : `The rule "usual" would have allowed the ${acts.length} transfers of the last ${DAYS} days; compare its amounts with what you want to allow.`,
      ...(forwards.length === 0
        ? []
        : [
            `The rule "forwards" allows the ${forwards.length} forwarding rules that exist; remove what you do not want to forward.`,
          ]),
      ...[...persons]
        .filter(([, person]) => document.people.every(({ id }) => id !== person))
        .map(
          ([key, person]) =>
            `The API key ${key} is enrolled for ${person}: give the person this ID, or list the key in api_keys of another one.`,
        ),
      ...(missing.length === 0
        ? []
        : [
            '"custody policy check" refuses this document until these fields are filled in:',
            ...missing,
            'Change the IDs and names of the people too, also in "groups".',
          ]),
    ],
  }
}
