import type { EventType } from '../database/event-types.ts'

const idOf = (payload: Record<string, unknown>): string | undefined => {
  const id = payload['id'] ?? payload['inv_id'] ?? payload['transaction_id']
  return typeof id === 'string' ? id : undefined
}

/**
 * What an event is about: everything with the same name is one object, whose events are numbered 1,
 * 2, 3 … Deposits and what is staked are transactions, and share their numbers.
 * @param payload of the event @param workspace its id, for what a workspace has one of
 */
export function objectOf(
  type: EventType,
  payload: Record<string, unknown>,
  workspace: string,
): string {
  const [group] = type.split('.', 1)
  switch (group) {
    case 'prepaid_fee':
      return `prepaid_fee:${workspace}`
    case 'gas_tank':
      return `gas_tank:${workspace}:${String(payload['network'])}`
    case 'address': {
      // One that was handed out has an id; one that is frozen is somebody else's.
      const tag = payload['address_tag'] ?? null
      return (
        idOf(type === 'address.created' ? payload : {}) ??
        `address:${String(payload['network'])}:${String(payload['address'])}${tag === null ? '' : `:${String(tag)}`}`
      )
    }
    default:
      return idOf(payload) ?? `${String(group)}:${workspace}`
  }
}
