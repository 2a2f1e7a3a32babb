import { createHash, sign, verify, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { canonicalJson } from './canonical.ts'

/**
 * The platform's authorisation of an order: two given signer nodes may sign given transactions for a
 * short time. A node that leads a session passes it to its partner, so that no node originates an order.
 */
const TAG = 'custody/order/v1\n'
/** HTTP header of a call of the platform to a signer node. */
export const ORDER_HEADER = 'custody-order'
/** Greatest lifetime of an authorisation in milliseconds. */
export const ORDER_LIFETIME_MS = 60_000
/** Greatest difference in milliseconds between the clocks of the platform and of a signer node. */
export const ORDER_SKEW_MS = 5000

/** What a transaction consists of besides the transactions that created its inputs. */
interface Unsigned {
  network: string
  bytes: string
  inputs: readonly { path: readonly number[] }[]
  change?: { output: number; path: readonly number[] } | undefined
}

/** Returns a hash that depends only on the transaction, not on additional data or the order of fields; hex. */
export const hashOfUnsigned = ({ network, bytes, inputs, change }: Unsigned): string =>
  sha256(
    JSON.stringify([
      network,
      bytes,
      inputs.map(({ path }) => path),
      change ? { output: change.output, path: change.path } : null,
    ]),
  )

/** The order that is authorised. `nodes`: hash of the identities of the installation's three nodes. */
export interface AuthorisedOrder {
  nodes: string
  workspace: string
  orders: readonly { purpose: unknown; unsigned: Unsigned }[]
  leader: number
  partner: number
}

/** `issued_at`, `expires_at`: Unix milliseconds of the platform's clock. `signature`: ECDSA, hex. */
export const authorisationSchema = z.strictObject({
  id: z.string().regex(/^[0-9a-f]{32}$/),
  issued_at: z.int().min(0),
  expires_at: z.int().min(0),
  signature: z.string().regex(/^[0-9a-f]{128}$/),
})
export type OrderAuthorisation = z.infer<typeof authorisationSchema>

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

function bytesOf(
  { nodes, workspace, orders, leader, partner }: AuthorisedOrder,
  { id, issued_at, expires_at }: Omit<OrderAuthorisation, 'signature'>,
): Buffer {
  const text = canonicalJson({
    nodes,
    workspace,
    orders: orders.map(({ purpose, unsigned }) => ({
      purpose: sha256(canonicalJson(purpose)),
      unsigned: hashOfUnsigned(unsigned),
    })),
    leader,
    partner,
    id,
    issued_at,
    expires_at,
  })
  return Buffer.from(TAG + text, 'utf8')
}

/**
 * Authorises an order.
 * @param key the platform's private key, ECDSA P-256
 * @param id 16 random bytes, hex
 */
export function authorise(
  key: KeyObject,
  order: AuthorisedOrder,
  times: Omit<OrderAuthorisation, 'signature'>,
): OrderAuthorisation {
  const signature = sign('sha256', bytesOf(order, times), { key, dsaEncoding: 'ieee-p1363' })
  return { ...times, signature: signature.toString('hex') }
}

/** Returns whether an authorisation is of this order; its times are not checked. */
export const isAuthorised = (
  key: KeyObject,
  order: AuthorisedOrder,
  { signature, ...times }: OrderAuthorisation,
): boolean =>
  verify(
    'sha256',
    bytesOf(order, times),
    { key, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'hex'),
  )

/** Returns an authorisation as the value of {@link ORDER_HEADER}. */
export const toHeader = (authorisation: OrderAuthorisation): string => JSON.stringify(authorisation)

/** Returns the authorisation in a header; null if it is missing or has another format. */
export function fromHeader(value: string | undefined): OrderAuthorisation | null {
  if (value === undefined) return null
  try {
    return authorisationSchema.safeParse(JSON.parse(value)).data ?? null
  } catch {
    return null
  }
}

/**
 * Returns the order in a call of the platform to a node; null if the call orders nothing.
 * @param call.nodes hash of the identities of the installation's three nodes
 * @param call.leader the node that is called
 */
export function orderOfCall(call: {
  nodes: string
  leader: number
  path: string
  body: unknown
}): AuthorisedOrder | null {
  const { nodes, leader, path } = call
  if (path !== '/sign' && path !== '/sign-run') return null
  const { workspace, partner, run, ...single } = call.body as Pick<
    AuthorisedOrder,
    'workspace' | 'partner'
  > & { run?: AuthorisedOrder['orders'] }
  const orders = path === '/sign-run' ? run! : [single as AuthorisedOrder['orders'][number]]
  return { nodes, workspace, orders, leader, partner }
}
