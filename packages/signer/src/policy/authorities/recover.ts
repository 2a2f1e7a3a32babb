import { addressAt, validateAddress } from '@custody/chains'
import { Refusal } from '../../errors.ts'
import type { RecoverOrder } from '../../store/state.ts'
import { assertFeeCap } from '../cap.ts'
import { decodedOn, networkNamed, verdictOf, type Context } from '../context.ts'
import type { Order, Recover, Subject, Verdict } from '../order.ts'

/**
 * Returns the recovery order of this node's own operator.
 * @throws Refusal if there is none, or a different one
 */
function orderOf({ store }: Context, order: Order, id: string): RecoverOrder {
  const { state } = store
  if (!state.recovering)
    throw new Refusal('ACTION_NOT_ALLOWED', 'A node that serves a platform signs no recovery')
  const wanted = state.recoveries.get(id)
  if (!wanted) {
    const isOther = [...state.recoveries.values()].some(
      ({ workspace, network }) =>
        workspace === order.workspace && network === order.unsigned.network,
    )
    throw new Refusal(
      'ORDER_UNKNOWN',
      isOther
        ? "This node's operator ordered another destination or fee for this network"
        : 'This node has no such order from its operator',
    )
  }
  if (wanted.workspace !== order.workspace)
    throw new Refusal('WORKSPACE_MISMATCH', 'The order belongs to another workspace')
  if (store.seconds() > wanted.expires_at)
    throw new Refusal('ORDER_EXPIRED', 'The order has expired')
  return wanted
}

function assertPays(
  { decoded, network, key }: Subject,
  registry: Context['registry'],
  wanted: RecoverOrder,
  toPath: number[] | undefined,
): void {
  const [payment, more] = decoded.payments
  if (!payment || more || decoded.action)
    throw new Refusal('SHAPE', 'The transaction must make exactly one payment')
  if (decoded.change !== null) throw new Refusal('SHAPE', 'A recovery must have no change')
  if (toPath) {
    if (toPath[1] !== network.chain_index || payment.address !== addressAt(network, key, toPath)) {
      throw new Refusal(
        'DESTINATION_MISMATCH',
        "The transaction does not pay the node's own address at that path",
      )
    }
    if (
      decoded.asset !== network.native_asset ||
      payment.tag !== null ||
      payment.amount > BigInt(wanted.fee_max)
    ) {
      throw new Refusal(
        'SHAPE',
        'A payment to an own address must not exceed the maximum network fee of one transaction',
      )
    }
    return
  }
  const to = validateAddress(registry, network.native_asset, wanted.to_address, wanted.tag)
  if (!to.valid || payment.address !== to.address) {
    throw new Refusal(
      'DESTINATION_MISMATCH',
      "The transaction pays another address than the operator's order",
    )
  }
  if (payment.tag !== to.address_tag)
    throw new Refusal('TAG_MISMATCH', 'The tag of the transaction differs from the approved tag')
}

/**
 * Rule 16: permits a payment from any address of a workspace's key to the address that this node's
 * own operator has entered. Neither the platform nor a caller takes part.
 */
export async function recover(context: Context, order: Order, purpose: Recover): Promise<Verdict> {
  const wanted = orderOf(context, order, purpose.order)
  const network = networkNamed(context, wanted.network)
  for (const { path } of order.unsigned.inputs) {
    if (path.length !== 3 || path[1] !== network.chain_index) {
      throw new Refusal(
        'FOREIGN_PATH',
        `The path ${path.join('/')} does not belong to ${network.code}`,
      )
    }
  }
  const subject = await decodedOn(context, order, network)
  assertPays(subject, context.registry, wanted, purpose.to_path)
  assertFeeCap(subject)
  if (subject.decoded.fee_max > BigInt(wanted.fee_max)) {
    throw new Refusal(
      'FEE_CAP',
      `The fee ${subject.decoded.fee_max} is above the ${wanted.fee_max} that the operator allowed`,
    )
  }
  // Rounds repeat: funds that are found later are sent to the same address.
  return verdictOf(subject, {
    step: JSON.stringify(['recover', wanted.order, ...subject.decoded.from]),
    repeatable: true,
    serves: null,
  })
}
