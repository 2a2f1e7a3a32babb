import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { keccak256, type Hex } from 'viem'
import { HANG_MS, waitFor } from '../../../testing/wait-for.ts'

/** Secret of the Engine API, which protects nothing here. */
const SECRET = Buffer.alloc(32, 0x11)
const ZERO: Hex = `0x${'0'.repeat(64)}`
const GENESIS_TIME = 1_700_000_000
const BLOCK_SECONDS = 12
/** The limit to which geth raises that of each block by default, so it stays the same. */
const GAS_LIMIT = '0x3938700'
/**
 * Time in milliseconds for which a node may add transactions to a block. If it misses one that the
 * block must have, it builds another block.
 */
const BUILD_MS = 60
const OUTPUT_LENGTH_MAX = 20_000
/**
 * Starts a program that ends with this process, even if this process is killed: its shell reads a
 * pipe that closes then.
 */
const GUARD = '"$@" </dev/null & exec >/dev/null 2>&1; cat; kill -9 $!; wait'

interface Payload {
  executionPayload: { blockHash: Hex; parentHash: Hex; transactions: Hex[] }
  executionRequests?: Hex[]
}
interface PayloadStatus {
  status: string
  validationError?: string | null
}
/** Response to one JSON-RPC request, with the status of HTTP. */
export interface RpcResponse {
  status: number
  body: { result?: unknown; error?: { code: number; message: string; data?: unknown } }
}

/**
 * A genesis block with Osaka's rules from the first block.
 * @param alloc balances in wei by address
 */
function genesisOf(chainId: number, alloc: Record<string, bigint>): unknown {
  const atBlockZero = ['homestead', 'eip150', 'eip155', 'eip158', 'byzantium', 'constantinople']
  atBlockZero.push('petersburg', 'istanbul', 'berlin', 'london')
  const blobs = (target: number, max: number, baseFeeUpdateFraction: number) => ({
    target,
    max,
    baseFeeUpdateFraction,
  })
  // Each block calls the queues of EIP-7002 and EIP-7251. These ones are always empty.
  const queues = [
    '0x00000961Ef480Eb55e80D19ad83579A64c007002',
    '0x0000BBdDc7CE488642fb579F8B00f3a590007251',
  ].map((address) => [address, { balance: '0x0', code: '0x00' }])
  const accounts = Object.entries(alloc).map(([address, wei]) => [
    address,
    { balance: `0x${wei.toString(16)}` },
  ])
  return {
    config: {
      chainId,
      ...Object.fromEntries(atBlockZero.map((fork) => [`${fork}Block`, 0])),
      terminalTotalDifficulty: 0,
      shanghaiTime: 0,
      cancunTime: 0,
      pragueTime: 0,
      osakaTime: 0,
      blobSchedule: {
        cancun: blobs(3, 6, 3_338_477),
        prague: blobs(6, 9, 5_007_716),
        osaka: blobs(6, 9, 5_007_716),
      },
    },
    timestamp: `0x${GENESIS_TIME.toString(16)}`,
    gasLimit: GAS_LIMIT,
    difficulty: '0x0',
    extraData: '0x',
    alloc: Object.fromEntries([...queues, ...accounts]) as unknown,
  }
}

async function post(url: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as RpcResponse['body'] }
}

/** A JSON web token, as the Engine API requires for each request. */
function token(): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ iat: Math.floor(Date.now() / 1000) })}`
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`
}

/** One geth with default options. It accepts blocks only from its {@link GethChain}. */
export class Geth {
  readonly url: string
  /** The node gets no further blocks. */
  isHeld = false
  readonly #engineUrl: string
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, url: string, engineUrl: string) {
    this.#child = child
    this.url = url
    this.#engineUrl = engineUrl
  }

  /**
   * Starts a node. Its options name folders and ports, keep it from searching for other nodes, and
   * make it execute blocks from the first one, because there is no node from which it could
   * download a state. None changes what it accepts or answers.
   */
  static async start(binary: string, folder: string, genesis: unknown): Promise<Geth> {
    mkdirSync(folder, { recursive: true })
    const [genesisFile, secretFile] = [join(folder, 'genesis.json'), join(folder, 'secret')]
    writeFileSync(genesisFile, JSON.stringify(genesis))
    writeFileSync(secretFile, SECRET.toString('hex'))
    const data = ['--datadir', join(folder, 'data')]
    const init = spawnSync(binary, ['init', ...data, genesisFile], { encoding: 'utf8' })
    if (init.status !== 0) throw new Error(`geth init: ${init.stderr}`)
    const ports = [
      '--http',
      '--http.port',
      '0',
      '--authrpc.port',
      '0',
      '--port',
      '0',
      '--ipcdisable',
    ]
    const peers = ['--nodiscover', '--maxpeers', '0', '--nat', 'none', '--syncmode', 'full']
    const words = [...data, ...ports, ...peers, '--authrpc.jwtsecret', secretFile]
    const child = spawn('sh', ['-c', GUARD, 'sh', binary, ...words], {
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    try {
      const { url, engineUrl } = await listening(child)
      return new Geth(child, url, engineUrl)
    } catch (error) {
      child.stdin.end()
      throw error
    }
  }

  /** Sends the body of an HTTP request, a text or an object. */
  send(body: unknown): Promise<RpcResponse> {
    return post(this.url, body)
  }

  /** @throws Error if the node answers with an error */
  async call<T>(method: string, ...params: unknown[]): Promise<T> {
    const { body } = await this.send({ jsonrpc: '2.0', id: 1, method, params })
    if (body.error) throw new Error(`${method}: ${body.error.code} ${body.error.message}`)
    return body.result as T
  }

  async engine<T>(method: string, ...params: unknown[]): Promise<T> {
    const request = { jsonrpc: '2.0', id: 1, method, params }
    const { body } = await post(this.#engineUrl, request, { authorization: `Bearer ${token()}` })
    if (body.error) throw new Error(`${method}: ${body.error.code} ${body.error.message}`)
    return body.result as T
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exit = new Promise((resolve) => this.#child.once('exit', resolve))
    this.#child.stdin!.end()
    await exit
  }
}

/** Resolves when both servers of a node listen, with their URLs. The system chose the ports. */
function listening(child: ChildProcess): Promise<{ url: string; engineUrl: string }> {
  return new Promise((resolve, reject) => {
    let text = ''
    const timer = setTimeout(() => reject(new Error(`geth does not listen\n${text}`)), HANG_MS)
    child.once('error', reject)
    // The listener stays, because an unread pipe would block the node once it is full.
    child.stderr!.setEncoding('utf8').on('data', (part: string) => {
      text = (text + part).slice(-OUTPUT_LENGTH_MAX)
      const port = (auth: boolean) =>
        new RegExp(`HTTP server started +endpoint=127\\.0\\.0\\.1:(\\d+) auth=${auth}`).exec(
          text,
        )?.[1]
      const [open, engine] = [port(false), port(true)]
      if (open === undefined || engine === undefined) return
      clearTimeout(timer)
      resolve({ url: `http://127.0.0.1:${open}`, engineUrl: `http://127.0.0.1:${engine}` })
    })
    child.stderr!.once('end', () => {
      clearTimeout(timer)
      reject(new Error(`geth ended\n${text}`))
    })
  })
}

/**
 * One or two geths and their consensus layer, which decides which blocks exist. Until
 * {@link finalize} no block is final, as after a start before the consensus layer has spoken.
 */
export class GethChain {
  readonly nodes: readonly Geth[]
  readonly #folder: string
  readonly #payloads = new Map<Hex, Payload>()
  /** Number of blocks by which the final block is behind the head; null: no block is final. */
  #finalDepth: number | null = null
  #built = 0

  private constructor(nodes: readonly Geth[], folder: string) {
    this.nodes = nodes
    this.#folder = folder
  }

  /**
   * @param options.binary path of geth
   * @param options.alloc balances in wei by address
   */
  static async start(options: {
    binary: string
    chainId: number
    alloc: Record<string, bigint>
    nodes?: 1 | 2
  }): Promise<GethChain> {
    const folder = mkdtempSync(join(tmpdir(), 'geth-'))
    const genesis = genesisOf(options.chainId, options.alloc)
    const nodes: Geth[] = []
    try {
      for (let at = 0; at < (options.nodes ?? 1); at++)
        nodes.push(await Geth.start(options.binary, join(folder, String(at)), genesis))
    } catch (error) {
      for (const node of nodes) await node.stop()
      rmSync(folder, { recursive: true, force: true })
      throw error
    }
    return new GethChain(nodes, folder)
  }

  get first(): Geth {
    return this.nodes[0]!
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.stop()
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 })
  }

  /**
   * Makes blocks.
   * @param by node that builds them on its own head; every other node that is not held gets them
   */
  async mine(blocks = 1, by: Geth = this.first): Promise<void> {
    for (let made = 0; made < blocks; made++) {
      await this.#publish(await this.#build(by), by)
    }
  }

  /** Makes one block that contains a transaction, which the first node has accepted. */
  async include(hash: Hex): Promise<void> {
    const payload = await waitFor(`a block with ${hash}`, async () => {
      const built = await this.#build(this.first)
      return built.executionPayload.transactions.some((raw) => keccak256(raw) === hash) && built
    })
    await this.#publish(payload, this.first)
  }

  /** Sends a block to the node that built it, and to those that are not held. */
  async #publish({ executionPayload }: Payload, by: Geth): Promise<void> {
    for (const node of this.nodes)
      if (node === by || !node.isHeld) await this.#feed(node, executionPayload.blockHash)
  }

  /**
   * Switches a node to the chain of another one: it catches up, or reorganises if the other one is
   * on another branch.
   */
  async follow(node: Geth, other: Geth): Promise<void> {
    const { hash } = await other.call<{ hash: Hex }>('eth_getBlockByNumber', 'latest', false)
    await this.#feed(node, hash)
  }

  /**
   * Makes the blocks final that are at least `depth` below the head, from the next block on. Null:
   * the consensus layer names no final block; the nodes keep the one that they have.
   */
  async finalize(depth: number | null): Promise<void> {
    this.#finalDepth = depth
    for (const node of this.nodes)
      if (!node.isHeld) await this.#forkchoice(node, await headOf(node))
  }

  async #forkchoice(node: Geth, head: Hex, attributes: object | null = null): Promise<Hex | null> {
    let final: Hex | undefined = head
    for (let depth = this.#finalDepth ?? Infinity; depth > 0 && final !== undefined; depth--)
      final =
        depth === Infinity ? undefined : this.#payloads.get(final)?.executionPayload.parentHash
    // The genesis block is known without a payload.
    const finalHash = final ?? ZERO
    const { payloadStatus, payloadId } = await node.engine<{
      payloadStatus: PayloadStatus
      payloadId: Hex | null
    }>(
      'engine_forkchoiceUpdatedV3',
      { headBlockHash: head, safeBlockHash: finalHash, finalizedBlockHash: finalHash },
      attributes,
    )
    if (payloadStatus.status !== 'VALID')
      throw new Error(`forkchoiceUpdated: ${JSON.stringify(payloadStatus)}`)
    return payloadId
  }

  async #build(node: Geth): Promise<Payload> {
    const head = await node.call<{ hash: Hex; timestamp: Hex }>(
      'eth_getBlockByNumber',
      'latest',
      false,
    )
    this.#built += 1
    const id = await this.#forkchoice(node, head.hash, {
      timestamp: `0x${(Number(head.timestamp) + BLOCK_SECONDS).toString(16)}`,
      // Distinguishes blocks of two branches.
      prevRandao: `0x${this.#built.toString(16).padStart(64, '0')}`,
      suggestedFeeRecipient: '0x00000000000000000000000000000000000000fe',
      withdrawals: [],
      parentBeaconBlockRoot: ZERO,
    })
    if (id === null) throw new Error('geth does not build a block')
    await sleep(BUILD_MS)
    const payload = await node.engine<Payload>('engine_getPayloadV5', id)
    this.#payloads.set(payload.executionPayload.blockHash, payload)
    return payload
  }

  /** Sends a block and the ancestors that a node lacks, and makes the block its head. */
  async #feed(node: Geth, hash: Hex): Promise<void> {
    const branch: Payload[] = []
    for (let at = this.#payloads.get(hash); at !== undefined;) {
      if (await node.call('eth_getBlockByHash', at.executionPayload.blockHash, false)) break
      branch.unshift(at)
      at = this.#payloads.get(at.executionPayload.parentHash)
    }
    for (const { executionPayload, executionRequests = [] } of branch) {
      const words = [executionPayload, [], ZERO, executionRequests]
      const status = await node.engine<PayloadStatus>('engine_newPayloadV4', ...words)
      if (status.status !== 'VALID') throw new Error(`newPayload: ${JSON.stringify(status)}`)
    }
    await this.#forkchoice(node, hash)
  }
}

async function headOf(node: Geth): Promise<Hex> {
  return (await node.call<{ hash: Hex }>('eth_getBlockByNumber', 'latest', false)).hash
}
