import type { EventType } from '../../core/database/event-types.ts'

const idOf = (payload: Record<string, unknown>): string | undefined => {
  const id = payload['id'] ?? payload['inv_id'] ?? payload['transaction_id']
  return typeof id === 'string' ? id : undefined
}

/**
 * Returns the name of the object of an event. Events with the same name are numbered 1, 2, 3 …
 * Deposits and stakes are transactions and share their numbers.
 * @param payload the event's payload
 * @param workspace ID of the workspace, for objects that exist once in a workspace
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
      // An issued address has an ID; a frozen address belongs to another party.
      const tag = payload['address_tag'] ?? null
      return (
        idOf(type === 'address.created' ? payload : {}) ??
        `address:${String(payload['network'])}:${String(payload['address'])}${tag === null ? '' : `:${String(tag)}`}`
      )
    }
    case 'approval':
      // It has the ID of its transfer, and numbers of its own.
      return `approval:${String(payload['id'])}`
    case 'policy':
      // A stop has a hash, and a change an ID.
      return payload['hash'] !== undefined && payload['id'] === undefined
        ? `policy:${String(payload['hash'])}`
        : (idOf(payload) ?? `policy:${workspace}`)
    default:
      return idOf(payload) ?? `${String(group)}:${workspace}`
  }
}
