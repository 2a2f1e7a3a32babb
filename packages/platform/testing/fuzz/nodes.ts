import { createPublicKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { join } from 'node:path'
import {
  decode,
  loadRegistry,
  publicKeysBelow,
  ChainError,
  type PublicKeyAt,
  type UnsignedTransaction,
} from '@custody/chains'
import { signersFolder } from '../../src/core/data-dir.ts'
import { SignerNodes } from '../../src/core/signing/nodes.ts'
import { OrderHeaders } from '../../src/core/signing/order-header.ts'
import {
  call,
  fundedWallet,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
} from '../harness.ts'
import { mutateJson, mutateText, oddText, oddValue, type SeededRandom } from './seeded-random.ts'
import { Found } from './run.ts'

const PAID: readonly [asset: string, held: string, amount: string, to: string][] = [
  ['ETH', '5', '0.5', '0x00000000000000000000000000000000000000ee'],
  ['USDT_ETH', '50', '2', '0x00000000000000000000000000000000000000ee'],
  ['BTC', '3', '0.1', 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'],
  ['XRP', '90', '2', 'rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh'],
  ['TRX', '900', '5', 'TPL66VK2gCXNCD7EJg9pgJRfqcRazjhUZY'],
  ['SOL', '9', '1', '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin'],
]
const ANSWER_MS_MAX = 20_000
/**
 * Time-out in milliseconds for a key, which takes each of three nodes seconds of processor time.
 */
const KEY_MS_MAX = 120_000
/**
 * Errors that a node may report about itself and its partner. Any other 500 is an unexpected error.
 */
const MAY_BE_AWAY = new Set([
  'PEER_UNAVAILABLE',
  'KEY_NOT_READY',
  'SESSION_ABORTED',
  'STARTING',
  'NOT_AUTHORISED',
])

interface NodeRequest {
  path: string
  body: Record<string, unknown>
}
interface Answer {
  status: number
  text: string
  body: Record<string, unknown>
}

/**
 * Three nodes with a platform, and all requests that the platform has sent to them for many kinds
 * of payments.
 */
export class Nodes {
  readonly #platform = new TestPlatform()
  readonly #requests: NodeRequest[] = []
  #agents: Agent[] = []
  #ports: { host: string; port: number }[] = []
  /** A hostile platform authorises whatever it orders. */
  #orders: OrderHeaders | undefined
  readonly #registry = loadRegistry('local')
  readonly #keys = new Map<string, PublicKeyAt>()

  async open(): Promise<void> {
    // oxlint-disable-next-line typescript/unbound-method -- it is called with the object it is called on
    const { call: ask } = SignerNodes.prototype
    const requests = this.#requests
    SignerNodes.prototype.call = async function called(
      this: SignerNodes,
      ...args: Parameters<typeof ask>
    ) {
      const [, method, path, body] = args
      if (method === 'POST')
        requests.push(structuredClone({ path, body: body as Record<string, unknown> }))
      return ask.apply(this, args)
    } as typeof ask
    await this.#platform.start()
    const user = await this.#platform.user('fuzz')
    for (const [asset, held, amount, to] of PAID) {
      await fundedWallet(this.#platform, user, asset, held)
      const { body } = await call<Transfer>(
        user,
        'POST',
        '/dac/v1/transaction',
        transferBody(asset, amount, to),
      )
      await terminal(user, body.id)
    }
    await call(user, 'POST', '/dac/v1/auto-forwarding', {
      asset: 'ETH',
      min_amount: 1,
      destination_address: PAID[0]?.[3],
      daily_cap: 10,
      expires_at: new Date(Date.now() + 86_400_000).toISOString(),
    })
    const { body: waiting } = await call<Transfer>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('ETH', '1', PAID[0]?.[3] as string),
    )
    await call(user, 'POST', `/dac/v1/transaction/${waiting.id}/cancel`, {})
    await terminal(user, waiting.id)
    // Concurrent payments of one account are signed in one session.
    const transfers = await Promise.all(
      Array.from({ length: 6 }, (_, at) =>
        call<Transfer>(
          user,
          'POST',
          '/dac/v1/transaction',
          transferBody('ETH', `0.0${at + 1}`, PAID[0]?.[3] as string),
        ),
      ),
    )
    for (const { body } of transfers) await terminal(user, body.id)
    const keys = (
      await call<
        { keys?: unknown } & {
          curve: 'secp256k1' | 'ed25519'
          public_key: string
          chain_code: string
        }[]
      >(user, 'GET', '/dac/v1/keys')
    ).body
    for (const { curve, public_key: publicKey, chain_code: chainCode } of Array.isArray(keys)
      ? keys
      : []) {
      this.#keys.set(
        curve,
        publicKeysBelow({
          curve,
          publicKey: Buffer.from(publicKey, 'hex'),
          chainCode: Buffer.from(chainCode, 'hex'),
        }),
      )
    }
    const folder = join(signersFolder(this.#platform.home), 'platform')
    const [key, cert] = [
      readFileSync(join(folder, 'tls.key')),
      readFileSync(join(folder, 'tls.crt')),
    ]
    const { nodes } = JSON.parse(readFileSync(join(folder, 'peers.json'), 'utf8')) as {
      nodes: { node: number; host: string; port: number; certificate: string; identity: string }[]
    }
    this.#ports = nodes
    const identities = nodes.map(({ node, identity }) => [node, createPublicKey(identity)] as const)
    this.#orders = new OrderHeaders(key, new Map(identities), () => Date.now())
    this.#agents = nodes.map(
      ({ certificate }) =>
        new Agent({
          keepAlive: true,
          key,
          cert,
          ca: certificate,
          minVersion: 'TLSv1.3',
          checkServerIdentity: () => undefined,
        }),
    )
    SignerNodes.prototype.call = ask
  }

  close(): Promise<void> {
    for (const agent of this.#agents) agent.destroy()
    return this.#platform.remove()
  }

  get paths(): string[] {
    return [...new Set(this.#requests.map(({ path }) => path))]
  }

  async #ask(node: number, method: string, path: string, text: string): Promise<Answer> {
    const { host, port } = this.#ports[node] as { host: string; port: number }
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          agent: this.#agents[node],
          host,
          port,
          method,
          path,
          servername: '',
          signal: AbortSignal.timeout(path === '/key' ? KEY_MS_MAX : ANSWER_MS_MAX),
          headers: {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(text),
            ...this.#authorised(node + 1, path, text),
          },
        },
        (response) => {
          let output = ''
          response.setEncoding('utf8').on('data', (chunk: string) => {
            output += chunk
          })
          response.on('error', reject).on('end', () => {
            let body: Record<string, unknown> = {}
            try {
              body = JSON.parse(output) as Record<string, unknown>
            } catch {
              /* the caller handles text that is not JSON */
            }
            resolve({ status: response.statusCode ?? 0, text: output, body })
          })
        },
      )
      outgoing.on('error', reject)
      outgoing.end(text)
    })
  }

  #authorised(node: number, path: string, text: string): Record<string, string> {
    try {
      return this.#orders?.of(node, path, JSON.parse(text), ANSWER_MS_MAX) ?? {}
    } catch {
      // The changed text is no order.
      return {}
    }
  }

  /** Sends one recorded valid request with a small change, or an invalid request. */
  async play(random: SeededRandom, count: (kind: string) => void): Promise<void> {
    const paths = this.paths.filter((path) => path !== '/key')
    // A key is expensive to generate, so only few requests are for one.
    const call = random.in100(2) ? '/key' : random.of(paths)
    const right = random.of(this.#requests.filter(({ path }) => path === call))
    const node = random.below(3)
    let [method, { path }] = ['POST', right] as [string, NodeRequest]
    let body: unknown = right.body
    let text: string | null = null
    switch (random.below(12)) {
      case 0:
        body = oddValue(random)
        break
      case 1:
        text = mutateText(random, JSON.stringify(right.body)).slice(0, 200_000)
        break
      case 2:
        text = JSON.stringify(right.body).replace(/[:,]/, (sign) =>
          random.of([`${sign}${sign}`, `:1e400,"a":`, `,"__proto__":{},`, sign]),
        )
        break
      case 3:
        path = random.of([
          `/${encodeURIComponent(oddText(random).slice(0, 100).toWellFormed())}`.replaceAll(
            '%00',
            '',
          ),
          '/status',
          '/peer/open',
          '/sign',
          '/void',
          `${path}/`,
          `${path}?x=1`,
        ])
        break
      case 4:
        method = random.of(['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
        break
      default:
        for (let turn = 1 + random.below(2); turn > 0; turn--) body = mutateJson(random, body)
    }
    text ??= JSON.stringify(body)
    const input = { node: node + 1, method, path, body: text.slice(0, 20_000) }
    const answer = await this.#ask(node, method, path, method === 'GET' ? '' : text).catch(
      (error: unknown) => {
        throw new Found('there was no answer', input, error)
      },
    )
    count(`${path.split('?')[0] === right.path ? right.path : 'another path'} ${answer.status}`)
    if (answer.status >= 500 && !MAY_BE_AWAY.has(String(answer.body['error'])))
      throw new Found(`a node answered ${answer.status} ${String(answer.body['error'])}`, {
        ...input,
        answer: answer.text.slice(0, 500),
      })
    if (answer.status >= 400 && typeof answer.body['error'] !== 'string')
      throw new Found('a refusal without a code', { ...input, answer: answer.text.slice(0, 500) })
    if (answer.status === 200 && path === '/sign' && body !== right.body)
      this.#judge(
        right.body['unsigned'] as UnsignedTransaction,
        (body as { unsigned: UnsignedTransaction }).unsigned,
        input,
      )
  }

  /**
   * Checks a changed transaction that a node has signed: it must be identical to the original, or
   * have the same effect.
   */
  #judge(right: UnsignedTransaction, signed: UnsignedTransaction, input: unknown): void {
    if (signed.bytes === right.bytes) return
    const publicKeyAt = this.#keys.get(this.#registry.network(right.network)?.curve ?? '')
    const paid = (unsigned: UnsignedTransaction): string => {
      try {
        return String(
          decode(this.#registry, unsigned, publicKeyAt as PublicKeyAt).payments.map(
            ({ address, amount, tag }) => `${address} ${amount} ${String(tag)}`,
          ),
        )
      } catch (error) {
        return error instanceof ChainError ? error.code : String(error)
      }
    }
    if (paid(signed) !== paid(right))
      throw new Found('a node signed another payment', { input, right })
  }
}
