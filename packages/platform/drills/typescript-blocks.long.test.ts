import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { installPacked } from '../../client/testing/packed.ts'
import { blocksOf, documents, ROOT } from '../testing/documents.ts'
import {
  balance,
  call,
  fundedWallet,
  PRIVATE_KEY,
  TestPlatform,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

/**
 * The TypeScript blocks of the documents that use the client: each is type-checked and run, from the
 * packed tarball, under the oldest and the current version of Node that the package supports.
 */
const OLD_NODE = '20.19.5'
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const platform = new TestPlatform()
const folder = mkdtempSync(join(tmpdir(), 'custody-blocks-'))
const project = join(folder, 'project')
let user: User
let nodes: { node: number; identity: string }[]

/** Blocks of pages that import the client, or continue the first block of such a page. */
const blocks = documents()
  .filter((file) => !/^packages\/(?!client\/)/.test(file) && file !== 'docs/adding-a-chain.md')
  .flatMap((file) => blocksOf(file).filter(({ language }) => language === 'ts'))
  // The first transfer of the client's README creates the wallet.
  .sort((a, b) => Number(a.file.startsWith('docs')) - Number(b.file.startsWith('docs')))

/** Names that a reader defines, with a type and a value. */
const NAMES: Record<string, [type: string, value: string]> = {
  baseUrl: ['string', 'process.env.BASE'],
  apiKey: ['string', 'process.env.API_KEY'],
  privateKey: ['string', "readFileSync('api-user.pem', 'utf8')"],
  payment: [
    'NewTransaction',
    `{ asset: 'BTC', amount: '0.01', destination_address: process.env.TO }`,
  ],
  isKnown: ['(transfer: unknown) => boolean', '() => true'],
  account: ['{ id: string }', `{ id: process.env.ACCOUNT }`],
  redirect: ['(url: string) => void', '(url) => console.log(url)'],
  book: ['(transaction: unknown) => void', '() => undefined'],
  handle: ['(event: unknown) => Promise<void>', 'async () => end?.abort()'],
  lastSeen: ['string | undefined', 'undefined'],
  signal: ['AbortSignal', '(end = new AbortController()).signal'],
  isNew: ['(id: string) => boolean', '() => true'],
  credit: ['(data: unknown) => void', '() => undefined'],
  queue: ['(event: unknown) => Promise<void>', 'async () => undefined'],
  id: ['string', "'00000000-0000-4000-8000-000000000000'"],
}

/** Returns the names that a block uses and does not define. */
const openNames = (text: string): string[] =>
  Object.keys(NAMES).filter(
    (name) =>
      new RegExp(`(?<![.\\w'])${name}(?![\\w:']|: )`).test(text) &&
      !new RegExp(`const (\\{[^}]*)?\\b${name}\\b`).test(text),
  )
const needsClient = (text: string): boolean =>
  text.includes('custody.') && !text.includes('const custody')
const importOf = (text: string, name: string, from: string): string =>
  new RegExp(`(?<!\\w)${name}\\b`).test(text) &&
  !new RegExp(`import [^\\n]*\\b${name}\\b`).test(text)
    ? `import { ${name} } from '${from}'\n`
    : ''
const CLIENT = `const custody = new CustodyClient({
  baseUrl: process.env.BASE ?? '', apiKey: process.env.API_KEY ?? '', privateKey: readFileSync('api-user.pem', 'utf8'),
  trust: JSON.parse(readFileSync('trust.json', 'utf8')),
})\n`

/** Returns a block with what its page has defined before. */
function programOf(text: string, isTyped: boolean): string {
  const open = openNames(text)
  const own = open.map((name) => {
    const [type, value] = NAMES[name] as [string, string]
    return isTyped ? `declare const ${name}: ${type}\n` : `const ${name} = ${value}\n`
  })
  const start = `${needsClient(text) ? CLIENT : ''}${isTyped ? '' : 'let end\n'}${own.join('')}`
  return `${importOf(start + text, 'CustodyClient', '@custody/client')}${importOf(start + text, 'readFileSync', 'node:fs')}${isTyped ? "import type { NewTransaction } from '@custody/client'\n" : ''}${start}${text}\nexport {}\n`
}

before(async () => {
  await Promise.all([platform.start(), installPacked(folder)])
  ;({ nodes } = JSON.parse(
    readFileSync(join(platform.home, 'signers', 'platform', 'peers.json'), 'utf8'),
  ) as { nodes: { node: number; identity: string }[] })
  const files = {
    'api-user.pem': PRIVATE_KEY,
    'compliance.pem': PRIVATE_KEY,
    'api-user.pub.pem': PRIVATE_KEY,
    'policy.json': '{}',
    'policy-1.json': '{}',
    'policy-2.json': '{}',
    'callers.json': '{}',
    'approval.json': '{}',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text)
})
after(async () => {
  await platform.remove()
  rmSync(folder, { recursive: true, force: true })
})

test('the documents have TypeScript blocks', () => {
  assert.ok(blocks.length >= 11, String(blocks.length))
})

test('every TypeScript block of the documents compiles with the types of the package', () => {
  const files = blocks.map(({ text }, index) => {
    writeFileSync(join(project, `block-${index}.ts`), programOf(text, true))
    return `block-${index}.ts`
  })
  const words = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022']
  const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')]
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      realpathSync(join(ROOT, 'node_modules/.bin/tsc')),
      ...words,
      ...types,
      '--ignoreConfig',
      ...files,
    ],
    { cwd: project, encoding: 'utf8' },
  )
  const names = blocks.map(({ file, line }, index) => `block-${index}.ts: ${file}:${line}`)
  assert.equal(status, 0, `${stdout}\n${names.join('\n')}`)
})

/** Blocks that end with an error here, because they need a transfer that waits for approvals. */
const REFUSALS: [RegExp, RegExp][] = [
  [/custody\.approvals\.verify/, /(ApprovalError|CustodyError|NOT_FOUND)/],
  [/verifyApproval\(/, /ApprovalError/],
]

/** Sends a signed webhook delivery and returns the status of the response. */
async function deliver(url: string, secret: string): Promise<number> {
  const body = JSON.stringify({ type: 'deposit.confirmed', timestamp: 'now', data: {}, id: 'e-1' })
  const seconds = Math.floor(Date.now() / 1000)
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`e-1.${seconds}.${body}`).digest('base64')
  const { status } = await fetch(url, {
    method: 'POST',
    body,
    headers: {
      'webhook-id': 'e-1',
      'webhook-timestamp': String(seconds),
      'webhook-signature': `v1,${signature}`,
    },
  })
  return status
}

/** Index of the block that creates the wallet. */
const first = blocks.findIndex(({ text }) => text.includes('custody.createWallet'))

async function fundBitcoin(): Promise<void> {
  const { body } = await call<{ address: string }>(user, 'POST', '/dac/v1/address', {
    asset: 'BTC',
  })
  await platform.fund('BTC', body.address, '5')
  await waitFor('deposit', async () => (await balance(user, 'BTC')).balance !== '0')
}

/** Runs a block; a server among the blocks gets a signed delivery, and is ended afterwards. */
async function runBlock(node: string, index: number, env: Record<string, string>): Promise<void> {
  const { file, line, text } = blocks[index] as (typeof blocks)[number]
  const isServer = text.includes('.listen(3000)')
  const port = await new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port: free } = server.address() as AddressInfo
      server.close(() => resolve(free))
    })
  })
  const program = join(project, `block-${index}.mjs`)
  const adapted = text
    .replace('https://custody.example.com', platform.base)
    .replace('4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90', user.apiKey)
    .replaceAll('bc1q…', env['TO'] ?? '')
    .replaceAll('payout-2041', `payout-${node.length}-${index}`)
    .replaceAll(/'(order-1001|rebalance-7)'/g, `'$1-${node.length}'`)
    .replace('.listen(3000)', `.listen(${port}, '127.0.0.1', () => console.log('listening'))`)
  writeFileSync(program, programOf(adapted, false))
  const child = spawn(node, [program], {
    cwd: project,
    env: { PATH: process.env['PATH'] ?? '', WEBHOOK_SECRET: SECRET, ...env },
  })
  let output = ''
  const isListening = new Promise<boolean>((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (piece: Buffer) => {
        output += piece.toString()
        if (output.includes('listening')) resolve(true)
      })
    child.once('close', () => resolve(false))
  })
  const closed = new Promise<number | null>((resolve) => {
    child.once('close', resolve)
  })
  if (isServer) {
    assert.ok(await isListening, `${file}:${line}\n${output}`)
    const url = `http://127.0.0.1:${port}/`
    assert.equal(await deliver(url, SECRET), 204, `${file}:${line}\n${output}`)
    assert.equal(await deliver(url, `${SECRET.slice(0, 10)}AAAA${SECRET.slice(14)}`), 400)
    assert.equal(await deliver(url, SECRET), 204, 'it still runs')
    child.kill()
    await closed
    return
  }
  const status = await closed
  const refusal = REFUSALS.find(([pattern]) => pattern.test(text))?.[1]
  if (refusal) assert.match(output, refusal, `${file}:${line}`)
  else assert.equal(status, 0, `${file}:${line}\n${output}`)
}

for (const version of ['the current one', OLD_NODE]) {
  test(`every TypeScript block of the documents runs with Node ${version}`, async (t) => {
    let node = process.execPath
    if (version === OLD_NODE) {
      const name = `node-${process.platform}-${process.arch}`
      const { status, stderr } = spawnSync(
        'npm',
        ['install', '--prefix', folder, '--no-save', '--no-audit', `${name}@${version}`],
        { encoding: 'utf8', cwd: folder },
      )
      if (status !== 0) return t.skip(`Node ${version} cannot be downloaded: ${stderr.trim()}`)
      node = join(folder, 'node_modules', name, 'bin/node')
      assert.equal(
        spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim(),
        `v${version}`,
      )
    }
    const workspace = `acme-${node.length}`
    user = await platform.user(workspace)
    const trust = {
      version: 1,
      network: 'local',
      workspace,
      sub_account: 'main',
      sub_account_index: 1,
      nodes: nodes.map(({ node: number, identity }) => ({ node: number, identity })),
    }
    writeFileSync(join(project, 'trust.json'), JSON.stringify(trust))
    const payee = await platform.user(`payee-${node.length}`)
    const to = await fundedWallet(platform, payee, 'BTC', '1')
    await fundedWallet(platform, user, 'ETH', '5')
    const key = await platform.operator('devnet', {
      command: 'venue',
      action: 'key',
      exchange: 'kraken',
      unlimited: true,
      no_withdraw: true,
    })
    const { body: account, text } = await call<{ id: string }>(
      user,
      'POST',
      '/dac/v1/exchange-accounts',
      { exchange: 'kraken', label: version, ...key },
    )
    assert.ok(account.id, text)
    const env = {
      BASE: platform.base,
      API_KEY: user.apiKey,
      TO: to,
      ACCOUNT: account.id,
    }
    for (const index of blocks.keys()) {
      await runBlock(node, index, env)
      // The first block creates the wallet that the others use; its own transfer lacks coins.
      if (index === first) await fundBitcoin()
    }
  })
}
