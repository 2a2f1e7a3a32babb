import type { ApiRole } from '@custody/request-auth/roles'
import {
  derivePublicKey,
  loadRegistry,
  addressAt,
  publicKeysBelow,
  type Curve,
  type Network,
  type UnsignedTransaction,
} from '@custody/chains'
import { signRequest, type SignedRequest } from '@custody/request-auth'
import { Transaction } from 'bitcoinjs-lib'
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  randomBytes,
  randomUUID,
  type KeyObject,
} from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Agent, request as httpsRequest } from 'node:https'
import { request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import {
  authorise,
  ORDER_HEADER,
  ORDER_LIFETIME_MS,
  orderOfCall,
  toHeader,
  type OrderAuthorisation,
} from '@custody/request-auth/orders'
import { pinOf, requirePinned } from '@custody/request-auth/pinned'
import { encodeFunctionData, erc20Abi, serializeTransaction } from 'viem'
import {
  editConfigs,
  freePorts,
  createDataDirs,
  nodeInProcess,
  runNode,
  type EngineName,
  type HomeConfig,
} from './data-dirs.ts'
import { nodesHash } from '../src/governance/word.ts'
import { callerKey as preparedCallerKey } from './prepared.ts'

/** A cluster of three real nodes on free ports, controlled as by the platform and the operator. */
/** JSON of any shape that a node returned. */
// oxlint-disable-next-line typescript/no-explicit-any -- tests read whatever comes
export type Json = any
export interface Answer {
  status: number
  body: Json
}
export const registry = loadRegistry('local')
export const BTC = registry.network('BTC') as Network
export const ETH = registry.network('ETH') as Network

interface ClusterOptions {
  /** Changes the configuration of each node before it starts. */
  edit?: (config: HomeConfig) => void
  keys?: 'prepared' | 'own'
  where?: 'here' | 'apart'
  engine?: EngineName
  beforeStart?: (parent: string) => Promise<void>
}

export class SignerCluster {
  readonly home: string
  peers!: {
    nodes: {
      node: number
      port: number
      socket: string
      home: string
      certificate: string
      identity: string
    }[]
  }
  readonly processes = new Map<number, ChildProcess>()
  readonly #here = new Map<number, () => Promise<void>>()
  readonly agents = new Map<string, Agent>()
  logs = ''
  /**
   * Milliseconds by which the clocks of the nodes in this process are ahead of the machine's clock.
   */
  aheadMs = 0
  /** Additional milliseconds for single nodes. */
  readonly aheadMsOf = new Map<number, number>()

  readonly #engine: EngineName
  #platformKey: KeyObject | undefined

  constructor(engine: EngineName = 'native') {
    this.#engine = engine
    this.home = mkdtempSync(join(tmpdir(), 'signer-'))
  }

  /**
   * Starts a cluster. With `own` keys no other test shares its nodes' identities or keys, and its
   * pool contains one key. The nodes run in this process; with `apart` each node has its own
   * process, which can be killed, stopped and started again. The `double` of the engine is for
   * tests of what nodes permit and record; everything else about the nodes is real.
   */
  static async start({
    edit = () => {},
    keys = 'prepared',
    where = 'here',
    engine = 'native',
    beforeStart = async () => {},
  }: ClusterOptions = {}): Promise<SignerCluster> {
    assert.ok(where === 'here' || engine === 'native', 'a node process uses the real engine')
    const cluster = new SignerCluster(engine)
    await createDataDirs(cluster.home, await freePorts(3), keys, engine)
    await beforeStart(cluster.home)
    cluster.peers = JSON.parse(readFileSync(join(cluster.home, 'platform', 'peers.json'), 'utf8'))
    editConfigs(cluster.home, (config) => {
      if (keys === 'own') config.pool = { secp256k1: 1, ed25519: 0 }
      // A slow machine must not exceed these limits. A test in which a node hangs sets lower ones.
      config.timeouts_ms.round = 60_000
      config.timeouts_ms.sign = 600_000
      edit(config)
    })
    await Promise.all(
      cluster.peers.nodes.map(async ({ node }) => {
        if (where === 'apart') await cluster.run(node)
        else await cluster.runHere(node)
      }),
    )
    return cluster
  }

  async run(node: number): Promise<void> {
    this.processes.set(
      node,
      await runNode(this.peers.nodes[node - 1]!.home, (text) => {
        this.logs += text
        if (process.env['SIGNER_TEST_LOG']) process.stderr.write(text)
      }),
    )
  }

  async kill(node: number, signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    const child = this.processes.get(node)
    if (!child || child.exitCode !== null || child.signalCode !== null)
      return child?.exitCode ?? null
    const ended = new Promise<number | null>((resolve) => {
      child.once('exit', (code) => {
        resolve(code)
      })
    })
    child.kill(signal)
    const code = await ended
    this.processes.delete(node)
    return code
  }

  async restart(node: number): Promise<void> {
    await this.kill(node)
    await this.run(node)
  }

  /** Starts a node in this process. */
  async runHere(node: number): Promise<void> {
    this.#here.set(
      node,
      await nodeInProcess(
        this.peers.nodes[node - 1]!.home,
        (text) => {
          this.logs += text
        },
        () => Date.now() + this.aheadMs + (this.aheadMsOf.get(node) ?? 0),
        this.#engine,
      ),
    )
  }

  /** Stops a node of this process. */
  async stopHere(node: number): Promise<void> {
    await this.#here.get(node)?.()
    this.#here.delete(node)
    // The connections to the node have ended with it.
    this.agents.get(`${node}/`)?.destroy()
    this.agents.delete(`${node}/`)
  }

  /** Stops and starts a node of this process. */
  async restartHere(node: number, between: () => Promise<void> = async () => {}): Promise<void> {
    await this.stopHere(node)
    await between()
    await this.runHere(node)
  }

  async stop(): Promise<void> {
    for (const [, child] of this.processes) child.kill('SIGCONT')
    await Promise.all([...this.processes.keys()].map((node) => this.kill(node)))
    await Promise.all([...this.#here.values()].map((stop) => stop()))
    for (const agent of this.agents.values()) agent.destroy()
    rmSync(this.home, { recursive: true, force: true })
  }

  agent(node: number, credentials?: { key?: string; cert?: string }): Agent {
    const name = `${node}/${
      credentials
        ? createHash('sha256')
            .update(credentials.cert ?? '')
            .digest('hex')
        : ''
    }`
    let agent = this.agents.get(name)
    if (!agent) {
      const platform = join(this.home, 'platform')
      agent = new Agent({
        keepAlive: true,
        ...(credentials ?? {
          key: readFileSync(join(platform, 'tls.key')),
          cert: readFileSync(join(platform, 'tls.crt')),
        }),
        rejectUnauthorized: false,
      })
      this.agents.set(name, agent)
    }
    return agent
  }

  /**
   * Authorises a call's order with the platform's key.
   * @returns null if the call orders nothing
   */
  authorise(leader: number, path: string, body: unknown): OrderAuthorisation | null {
    const nodes = nodesHash(
      new Map(this.peers.nodes.map(({ node, identity }) => [node, createPublicKey(identity)])),
    )
    const order = orderOfCall({ nodes, leader, path, body })
    if (order === null) return null
    this.#platformKey ??= createPrivateKey(
      readFileSync(join(this.home, 'platform', 'tls.key'), 'utf8'),
    )
    const issuedAt = Date.now() + this.aheadMs
    return authorise(this.#platformKey, order, {
      id: randomBytes(16).toString('hex'),
      issued_at: issuedAt,
      expires_at: issuedAt + ORDER_LIFETIME_MS,
    })
  }

  #orderHeader(leader: number, path: string, text: string): Record<string, string> {
    try {
      const authorisation = this.authorise(leader, path, JSON.parse(text))
      return authorisation ? { [ORDER_HEADER]: toHeader(authorisation) } : {}
    } catch {
      // Some tests send what is no order.
      return {}
    }
  }

  /** Sends an order without the platform's authorisation. */
  sendUnauthorised(node: number, path: string, text: string): Promise<Answer> {
    return this.send(node, 'POST', path, text, undefined, 120_000, {})
  }

  /**
   * Sends one HTTPS request to a node; `text` is sent unchanged.
   * @param headers default: the platform's authorisation, if the text is an order
   */
  send(
    node: number,
    method: string,
    path: string,
    text: string | null,
    credentials?: { key?: string; cert?: string },
    timeout = 120_000,
    headers?: Record<string, string>,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = httpsRequest(
        {
          agent: this.agent(node, credentials),
          host: '127.0.0.1',
          port: this.peers.nodes[node - 1]!.port,
          method,
          path,
          headers:
            text === null
              ? {}
              : {
                  'content-type': 'application/json',
                  ...(headers ?? this.#orderHeader(node, path, text)),
                },
        },
        (response) => {
          let output = ''
          response.setEncoding('utf8').on('data', (chunk: string) => {
            output += chunk
          })
          response.on('end', () => {
            resolve({
              status: response.statusCode!,
              body: output === '' ? null : JSON.parse(output),
            })
          })
        },
      )
      const pin = pinOf(this.peers.nodes[node - 1]!.certificate)
      request.on('socket', (socket) => {
        // A reused connection has already been checked.
        if (socket.connecting) requirePinned(socket as TLSSocket, { pin, now: Date.now })
      })
      request.setTimeout(timeout, () => {
        request.destroy(new Error('timeout'))
      })
      request.on('error', reject)
      request.end(text ?? undefined)
    })
  }

  get(node: number, path: string): Promise<Answer> {
    return this.send(node, 'GET', path, null)
  }
  /**
   * Sends a request to a node. A node whose clock is later than its record, as after each start from
   * prepared data, asks its peers for the time and waits 1.5 s for them. While a peer runs that a busy
   * machine has kept from answering, the request is sent again.
   */
  async post(node: number, path: string, body: unknown): Promise<Answer> {
    for (;;) {
      const answer = await this.send(node, 'POST', path, JSON.stringify(body))
      const running = [...this.#here.keys(), ...this.processes.keys()]
      if (
        answer.body?.error !== 'CLOCK_DOUBTED' ||
        !String(answer.body.message).endsWith('no peer can be queried to confirm it') ||
        running.every((each) => each === node)
      )
        return answer
      await sleep(100)
    }
  }

  operator(node: number, command: string, body: unknown = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        {
          agent: false,
          socketPath: this.peers.nodes[node - 1]!.socket,
          method: 'POST',
          path: `/${command}`,
        },
        (response) => {
          let output = ''
          response.setEncoding('utf8').on('data', (chunk: string) => {
            output += chunk
          })
          response.on('end', () => {
            resolve({ status: response.statusCode!, body: JSON.parse(output) })
          })
        },
      )
      request.on('error', reject)
      request.end(JSON.stringify(body))
    })
  }

  /** Enrols the tests' RSA key for a sub-account index. */
  async enrol(
    node: number,
    {
      sub_account,
      ...enrolment
    }: {
      api_key: string
      workspace: string
      sub_account: number
      role?: ApiRole
      person?: string
    },
  ): Promise<void> {
    const { status, body } = await this.operator(node, 'enrol', {
      role: 'full',
      ...enrolment,
      public_key_pem: callerPem,
      sub_account: `sub-${sub_account}`,
      index: sub_account,
    })
    if (status !== 200) throw new Error(JSON.stringify(body))
  }

  async everywhere(command: string, body: unknown): Promise<Answer[]> {
    return Promise.all([1, 2, 3].map((node) => this.operator(node, command, body)))
  }

  /**
   * Requests a workspace's key from a node until it is ready. A peer that is unreachable for a
   * moment is waited for too.
   */
  async key(node: number, workspace: string, curve: Curve): Promise<Answer> {
    for (;;) {
      const answer = await this.post(node, '/key', { workspace, curve })
      if (answer.status !== 202 && answer.body?.error !== 'PEER_UNAVAILABLE') return answer
      await sleep(100)
    }
  }

  /** Creates a workspace whose key is ready. */
  async workspace(name = `w-${randomUUID().slice(0, 8)}`): Promise<Workspace> {
    const { status, body } = await this.key(1, name, 'secp256k1')
    if (status !== 200) throw new Error(JSON.stringify(body))
    return new Workspace(this, name, body)
  }
}

const keys = await preparedCallerKey()
export const callerKey = createPrivateKey(keys.privateKey)
export const callerPem = keys.publicKey

export interface Caller {
  api_key: string
  sub_account: number
}
export const SINK_ETH = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
export const SINK_BTC = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'

export class Workspace {
  readonly cluster: SignerCluster
  readonly name: string
  readonly set: Json
  readonly key: { publicKey: Uint8Array; chainCode: Uint8Array }

  constructor(cluster: SignerCluster, name: string, set: Json) {
    this.cluster = cluster
    this.name = name
    this.set = set
    this.key = {
      publicKey: new Uint8Array(Buffer.from(set.public_key, 'hex')),
      chainCode: new Uint8Array(Buffer.from(set.chain_code, 'hex')),
    }
  }

  async caller(sub_account = 1, role: ApiRole = 'full', nodes = [1, 2, 3]): Promise<Caller> {
    const api_key = randomUUID()
    for (const node of nodes)
      await this.cluster.enrol(node, { api_key, role, workspace: this.name, sub_account })
    return { api_key, sub_account }
  }

  address(network: Network, path: number[]): string {
    return addressAt(network, this.key, path)
  }

  /** Sends a signature order and returns the answer of one node. */
  sign(
    purpose: unknown,
    unsigned: UnsignedTransaction,
    pair: readonly [number, number] = [1, 2],
  ): Promise<Answer> {
    return this.cluster.post(pair[0], '/sign', {
      workspace: this.name,
      purpose,
      unsigned,
      partner: pair[1],
    })
  }

  publicKeyAt = (path: readonly number[]): Uint8Array =>
    publicKeysBelow({ curve: 'secp256k1', ...this.key })(path)
}

/** @param rule number of the design's rule that refuses, if the test states it */
export function refused(answer: Answer, code: string, rule?: number): void {
  assert.equal(answer.body?.error, code, JSON.stringify(answer.body))
  if (rule !== undefined) assert.equal(answer.body.rule, rule)
}
export function signed(answer: Answer): void {
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
}

export const now = (): number => Math.floor(Date.now() / 1000)

export function transfer(
  caller: Caller,
  body: Record<string, unknown> | string,
  more: Partial<Parameters<typeof signRequest>[0]> = {},
): Promise<SignedRequest> {
  const text =
    typeof body === 'string'
      ? body
      : JSON.stringify({ destination_type: 'EXTERNAL', source_type: 'INTERNAL', ...body })
  return signRequest({
    apiKey: caller.api_key,
    privateKey: callerKey,
    method: 'POST',
    uri: '/dac/v1/transaction',
    body: text,
    ...more,
  })
}

export const pay = (request: SignedRequest, receipts?: unknown[]): unknown => ({
  kind: 'pay',
  request,
  ...(receipts ? { receipts } : {}),
})

export interface EthOptions {
  to?: string
  value?: bigint
  nonce?: number
  gas?: bigint
  maxFeePerGas?: bigint
  data?: `0x${string}`
  chainId?: number
  path?: number[]
}

export function eth(path: number[], o: EthOptions = {}): UnsignedTransaction {
  const maxFeePerGas = o.maxFeePerGas ?? 2_000_000_000n
  const bytes = serializeTransaction({
    type: 'eip1559',
    chainId: o.chainId ?? 31337,
    nonce: o.nonce ?? 0,
    gas: o.gas ?? 21_000n,
    to: (o.to ?? SINK_ETH) as `0x${string}`,
    value: o.value ?? 0n,
    maxFeePerGas,
    maxPriorityFeePerGas: maxFeePerGas / 10n,
    ...(o.data ? { data: o.data } : {}),
  })
  return { network: 'ETH', bytes: bytes.slice(2), inputs: [{ path }] }
}

export const USDT = registry.asset('USDT_ETH')!
export function usdt(
  path: number[],
  to: string,
  amount: bigint,
  o: EthOptions = {},
): UnsignedTransaction {
  return eth(path, {
    gas: 65_000n,
    to: USDT.contract_address as string,
    data: encodeFunctionData({
      abi: erc20Abi,
      functionName: 'transfer',
      args: [to as `0x${string}`, amount],
    }),
    ...o,
  })
}

/** Returns the output script of a P2WPKH path. */
const scriptOf = (publicKey: Uint8Array): Buffer =>
  Buffer.concat([
    Buffer.from([0x00, 0x14]),
    createHash('ripemd160').update(createHash('sha256').update(publicKey).digest()).digest(),
  ])

/**
 * Creates a transaction from outside the workspace that pays `values` to paths of the workspace.
 */
export function funding(
  workspace: Workspace,
  outputs: { path: number[]; value: bigint }[],
): Transaction {
  const transaction = new Transaction()
  transaction.version = 2
  transaction.addInput(randomBytes(32), 0, 0xfffffffd)
  for (const { path, value } of outputs)
    transaction.addOutput(
      scriptOf(
        derivePublicKey('secp256k1', workspace.key.publicKey, workspace.key.chainCode, path),
      ),
      value,
    )
  return transaction
}

export interface BtcOptions {
  inputs: { funding: Transaction; output: number; path: number[] }[]
  payTo?: Buffer
  amount: bigint
  change?: { path: number[]; value: bigint; script?: Buffer }
}
export const SINK_BTC_SCRIPT = Buffer.from('0014751e76e8199196d454941c45d1b3a323f1433bd6', 'hex')

export function btc(workspace: Workspace, o: BtcOptions): UnsignedTransaction {
  const transaction = new Transaction()
  transaction.version = 2
  for (const { funding: previous, output } of o.inputs)
    transaction.addInput(previous.getHash(), output, 0xfffffffd)
  transaction.addOutput(o.payTo ?? SINK_BTC_SCRIPT, o.amount)
  if (o.change)
    transaction.addOutput(
      o.change.script ?? scriptOf(workspace.publicKeyAt(o.change.path)),
      o.change.value,
    )
  return {
    network: 'BTC',
    bytes: transaction.toHex(),
    inputs: o.inputs.map(({ funding: previous, path }) => ({ path, previous: previous.toHex() })),
    ...(o.change ? { change: { output: 1, path: o.change.path } } : {}),
  }
}
