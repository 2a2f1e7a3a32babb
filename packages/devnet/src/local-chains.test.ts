// A chain family consists of a folder with a LocalChain and a line in the list. A toy family shows
// that this is sufficient.
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { after, before, test } from 'node:test'
import { parseAmount } from './amount.ts'
import { Devnet, FAMILIES } from './devnet.ts'
import type { RpcApi } from './http-server.ts'
import type { Endpoint, FundOrder, Head, LocalChain } from './local-chain.ts'
import { LazyChain } from './lazy-chain.ts'
import { localStellarChains } from './stellar/local.ts'
import { removeHome, tempHome } from '../testing/support.ts'

/** A chain with empty blocks. */
class Toy {
  readonly paid: bigint[] = []
  height = 0
  isClosed = false

  close(): void {
    this.isClosed = true
  }
}

const toys: Toy[] = []

class LocalToy extends LazyChain<Toy> implements LocalChain {
  readonly code = 'TOY'
  readonly engine = 'nothing'

  protected async open(): Promise<Toy> {
    toys.push(new Toy())
    return toys.at(-1) as Toy
  }

  protected headOf({ height }: Toy): Head {
    return { height, hash: `toy ${height}` }
  }

  protected waitingIn(): number {
    return 0
  }

  async apiAt(below: string): Promise<RpcApi | undefined> {
    if (below !== '') return undefined
    const chain = await this.chain()
    return {
      faults: this.faults,
      contentType: 'text/plain',
      handle: async (body) => ({ status: 200, body: `${chain.height} ${body}` }),
    }
  }

  endpoints(url: string): Endpoint[] {
    return [{ protocol: 'toy', url, example: `curl ${url}` }]
  }

  async addressOf(secret: Uint8Array): Promise<string> {
    return Buffer.from(secret).toString('hex')
  }

  async paymentsIn(): Promise<undefined> {
    return undefined
  }

  async fund({ amount }: FundOrder): Promise<string> {
    const chain = await this.chain()
    chain.paid.push(parseAmount(amount, 2))
    return `payment ${chain.paid.length}`
  }

  async mine(blocks: number): Promise<Head> {
    const chain = await this.chain()
    chain.height += blocks
    return this.headOf(chain)
  }
}

const home = tempHome()
let devnet: Devnet
const ask = async (body: Record<string, unknown>) => {
  const answer = await fetch(`${devnet.url}/control`, {
    method: 'POST',
    body: JSON.stringify(body),
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}
const done = async (body: Record<string, unknown>) => {
  const answer = await ask(body)
  assert.equal(answer.status, 200, JSON.stringify(answer.body))
  return answer.body
}
const refused = async (body: Record<string, unknown>, error: string) =>
  assert.deepEqual(await ask(body), { status: 400, body: { error } })

before(async () => {
  devnet = await Devnet.start(home, 0, {
    manual: true,
    families: [localStellarChains, (place) => [new LocalToy(place)]],
  })
})
after(() => {
  devnet.close()
  removeHome(home)
})

test('an added family is listed, but not started until it is used', async () => {
  const { networks, tokens } = await done({ command: 'info' })
  assert.deepEqual((networks as Record<string, unknown>)['TOY'], {
    height: null,
    hash: null,
    waiting: null,
    url: `${devnet.url}/toy`,
    engine: 'nothing',
    fault: 'heal',
  })
  assert.deepEqual(tokens, {})
  const { endpoints } = await done({ command: 'urls' })
  assert.deepEqual((endpoints as unknown[]).at(-1), {
    network: 'TOY',
    protocol: 'toy',
    url: `${devnet.url}/toy`,
    example: `curl ${devnet.url}/toy`,
  })
  assert.equal(toys.length, 0)
})

test('every command finds the family by asset or network', async () => {
  assert.deepEqual(await done({ command: 'fund', asset: 'TOY', address: 'x', amount: '1.5' }), {
    hash: 'payment 1',
  })
  assert.deepEqual(toys[0]?.paid, [150n])
  assert.deepEqual(await done({ command: 'mine', network: 'TOY', blocks: 3 }), {
    height: 3,
    hash: 'toy 3',
  })
  assert.equal(
    await (await fetch(`${devnet.url}/toy`, { method: 'POST', body: 'hello' })).text(),
    '3 hello',
  )
  assert.equal((await fetch(`${devnet.url}/toy/else`, { method: 'POST', body: '' })).status, 404)
  await done({ command: 'fault', network: 'TOY', mode: 'down' })
  await assert.rejects(fetch(`${devnet.url}/toy`, { method: 'POST', body: '' }))
  await done({ command: 'fault', network: 'TOY', mode: 'heal' })
  assert.equal(toys.length, 1)
})

test('reports an unsupported action in one sentence', async () => {
  await refused(
    { command: 'reorg', network: 'TOY', depth: 1 },
    'TOY is never reorganised: its blocks are final',
  )
  await refused(
    { command: 'congestion', network: 'TOY', fee_rate: '5' },
    'TOY has no fee market that can be congested here',
  )
  await refused(
    { command: 'fund', asset: 'TOY', address: 'x', amount: '1', tag: '7' },
    'TOY has no address tags',
  )
  await refused({ command: 'contract', network: 'TOY', ticker: 'EURC' }, 'TOY has no tokens here')
  await refused(
    { command: 'mine', network: 'BTC', blocks: 1 },
    'network "BTC" is unknown; must be one of XLM, TOY',
  )
  await refused(
    { command: 'fund', asset: 'BTC', address: 'x', amount: '1' },
    'asset "BTC" is unknown; must be one of XLM, TOY',
  )
  await refused(
    { command: 'toString' },
    `command "toString" is unknown; must be one of ${[
      'fund',
      'mine',
      'halt',
      'reorg',
      'fault',
      'clock',
      'risk',
      'price',
      'drop',
      'congestion',
      'special',
      'contract',
      'venue',
      'urls',
      'info',
    ].join(', ')}`,
  )
})

test('stopping closes all open resources, including those that finish opening later', async () => {
  const place = { home, timing: { manual: true, pace: 1, now: () => 0 } }
  const [early, late] = [new LocalToy(place), new LocalToy(place)]
  await early.start()
  const opened = toys.at(-1)
  early.close()
  assert.equal(opened?.isClosed, true)
  const opening = late.start()
  late.close()
  await opening
  assert.equal(toys.at(-1)?.isClosed, true)
})

const src = import.meta.dirname

test("code outside the families' folders never compares a network or its family", () => {
  const codes = FAMILIES.flatMap((family) =>
    family({ home, timing: { manual: true, pace: 1, now: () => 0 } }),
  ).map(({ code }) => code)
  const offenders = globSync('!(*.test).ts', { cwd: src }).flatMap((file) =>
    readFileSync(join(src, file), 'utf8')
      .split('\n')
      .filter((line) =>
        codes.some((code) => new RegExp(`[=!]== '${code}'|case '${code}'|family ===`).test(line)),
      )
      .map((line) => `${basename(file)}: ${line.trim()}`),
  )
  assert.deepEqual(offenders, [])
})
