import { useDebounced } from '../api/debounced.ts'
import { evaluatePolicy } from '../api/queries.ts'
import type { PolicyEvaluation } from '../api/types.ts'
import { useKeyState } from './key-notice.tsx'
import { Note } from './page.tsx'
import { Time } from './values.tsx'

/** Greatest number of rules whose reasons are shown. */
const REASONS_MAX = 5

const needsText = (needs: PolicyEvaluation['needs']): string =>
  needs.map(({ group, k }) => `${k} of ${group}`).join(' and ')

/** Reasons why rules do not allow the transfer, or deny it. */
function Reasons({ of }: { of: PolicyEvaluation['tried'] }) {
  const reasons = of.filter(({ why }) => why !== null).slice(0, REASONS_MAX)
  return reasons.length === 0 ? null : (
    <ul class="plain-list">
      {reasons.map(({ rule, why }) => (
        <li key={rule}>
          {rule}: {why}
        </li>
      ))}
    </ul>
  )
}

/** What the policy would decide, in words. */
export function PolicyVerdict({ of }: { of: PolicyEvaluation }) {
  const { effect, via, needs, tried, refusal } = of
  if (effect === 'allow')
    return (
      <Note tone="neutral">
        <p>The policy allows it by the rule “{via}”.</p>
      </Note>
    )
  if (effect === 'approve')
    return (
      <Note tone="info">
        <p>
          By the rule “{via}” of the policy, the transfer waits for the approvals of{' '}
          {needsText(needs)}.
        </p>
      </Note>
    )
  if (refusal?.frees_at)
    return (
      <Note tone="warn">
        <p>
          A window of the policy is full: the transfer waits until about{' '}
          <Time at={refusal.frees_at} />.
        </p>
      </Note>
    )
  return (
    <Note tone="warn">
      <p>The policy does not allow it{refusal === null ? '.' : `: ${refusal.message}`}</p>
      <Reasons of={tried} />
    </Note>
  )
}

/**
 * Returns what the policy of the workspace would decide about a transfer, as two signer nodes say now;
 * null without a policy, or while no key of this browser can sign.
 * @param body of the request that is signed next
 */
export function usePolicyVerdict(body: object): PolicyEvaluation | null {
  const key = useKeyState()
  const apiKey = key?.state === 'ready' ? (key.user?.api_key ?? null) : null
  const { data } = useDebounced(
    apiKey === null ? null : () => evaluatePolicy('/dac/v1/transaction', body, apiKey),
    JSON.stringify([apiKey, body]),
  )
  return data === null || data.effect === 'none' ? null : data
}

/** Whether the nodes would refuse the transfer, even after a wait or with approvals. */
export const isDenied = (of: PolicyEvaluation | null): boolean =>
  of?.effect === 'deny' && !of.refusal?.frees_at
