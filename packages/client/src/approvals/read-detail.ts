import { LIMITS } from '@custody/policy'
import { refuse } from './errors.ts'
import type { DetailedApproval } from './shapes.ts'

const STATES: readonly string[] = ['open', 'approved', 'rejected', 'expired', 'ended']

type Fields = Record<string, unknown>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const areTexts = (value: Fields, names: readonly string[]): boolean =>
  names.every((name) => typeof value[name] === 'string')

/** Number and hash of a policy document. */
const isPolicy = (value: unknown): boolean =>
  isObject(value) &&
  Number.isSafeInteger(value['number']) &&
  typeof value['hash'] === 'string' &&
  /^[0-9a-f]{64}$/.test(value['hash'])

const isNeed = (value: unknown): boolean =>
  isObject(value) &&
  typeof value['group'] === 'string' &&
  Number.isSafeInteger(value['k']) &&
  Number(value['k']) >= 0 &&
  Number(value['k']) <= LIMITS.people

/**
 * Checks the form of a response of `GET /dac/v1/approvals/{id}`, of which nothing is trusted.
 * @throws ApprovalError `SHAPE`
 */
export function readDetail(value: unknown): DetailedApproval {
  const wrong = (what: string): never =>
    refuse('SHAPE', `the platform did not return an approval of a transfer: ${what}`)
  if (!isObject(value)) return wrong('it is not an object')
  if (value['action'] === 'policy_change')
    return wrong('it is a policy change, which "npx custody approve" and the approver page sign')
  const { statement, request, needs, have } = value
  if (!areTexts(value, ['id', 'state', 'action'])) return wrong('id, state or action is missing')
  if (!STATES.includes(value['state'] as string)) return wrong('its state is not known here')
  if (
    !isObject(statement) ||
    !areTexts(statement, ['mode', 'workspace', 'nodes', 'id', 'subject', 'action']) ||
    !isPolicy(statement['policy'])
  )
    return wrong('its statement is not complete')
  if (!isObject(request) || !areTexts(request, ['token', 'method', 'uri', 'body']))
    return wrong('the request of the caller is missing')
  if (Array.isArray(needs) && needs.length > LIMITS.approvalGroups)
    return wrong(`needs contains more than ${LIMITS.approvalGroups} groups`)
  if (!Array.isArray(needs) || !needs.every(isNeed)) return wrong('needs is not a list of quorums')
  if (!Array.isArray(have) || !have.every(isObject)) return wrong('have is not a list of decisions')
  return value as unknown as DetailedApproval
}
