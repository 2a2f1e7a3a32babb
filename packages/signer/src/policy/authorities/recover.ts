import { addressAt, type DecodedTransaction } from '@custody/chains'
import { Refusal } from '../../errors.ts'
import type { RecoverOrder } from '../../store/state.ts'
import { decodedOn, networkNamed, verdictOf, type Context } from '../context.ts'
import { payeeOfOrder } from '../drain.ts'
import { assertCovered } from '../gate/effects.ts'
import type { Covered, Order, Recover, Subject, Verdict } from '../order.ts'

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

/** Rule 16: one payment without change: to the destination of the order, or to an own address. */
function assertRecovers(
  subject: Subject,
  registry: Context['registry'],
  wanted: RecoverOrder,
  toPath: number[] | undefined,
): asserts subject is Covered {
  const { decoded, network, key } = subject
  if (decoded.change !== null) throw new Refusal('SHAPE', 'A recovery must have no change')
  const native = network.native_asset
  if (toPath === undefined) {
    const does = payeeOfOrder(registry, native, wanted.to_address, wanted.tag)
    return assertCovered(subject, {
      payer: null,
      does: { ...does, asset: decoded.asset, amount: null },
    })
  }
  const payee = "the node's own address at that path"
  if (toPath[1] !== network.chain_index)
    throw new Refusal('DESTINATION_MISMATCH', `The transaction must pay ${payee}`)
  const address = addressAt(network, key, toPath)
  assertCovered(subject, {
    payer: null,
    does: { asset: native, address, payee, tag: null, amount: null },
  })
  const [payment] = subject.decoded.payments as [DecodedTransaction['payments'][number]]
  if (payment.amount > BigInt(wanted.fee_max))
    throw new Refusal(
      'SHAPE',
      'A payment to an own address must not exceed the maximum network fee of one transaction',
    )
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
  assertRecovers(subject, context.registry, wanted, purpose.to_path)
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
    ordered: null,
  })
}
