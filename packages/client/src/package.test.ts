// Tests the npm package: it is packed, installed in an empty project with its dependencies,
// type-checked and run, also by an older Node.js version if one is installed.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { addressAt, loadRegistry } from '@custody/chains'
import { checkDocument } from '@custody/policy'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { allow, documentWith, keyOf } from '../../policy/testing/documents.ts'
import { approvalWith } from '../testing/approval-fixture.ts'
import { Nodes } from '../testing/certified.ts'
import { installPacked } from '../testing/packed.ts'
import { TestServer } from '../testing/server.ts'
import { placeOf } from './approvals/parts.ts'

const root = fileURLToPath(new URL('../../../', import.meta.url))
const API_KEY = '4f7bd0a2-6f0e-4b5c-9d3e-2a8f1c5b7e90'
const pair = generateKeyPairSync('rsa', { modulusLength: 4096 })
const folder = mkdtempSync(join(tmpdir(), 'custody-package-'))
const [made, project] = [join(folder, 'made'), join(folder, 'project')]
/**
 * Node.js binaries for the test: the current one, and the system's if it is another version that
 * the package supports.
 */
const nodes = [process.execPath, '/usr/bin/node'].filter((path) => {
  const version = existsSync(path)
    ? spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout
    : ''
  return Number(/^v(\d+)/.exec(version)?.[1]) >= 20
})
let server: TestServer
let manifest: { dependencies: Record<string, string> }

before(async () => {
  server = await TestServer.start(API_KEY, pair.publicKey)
  manifest = await installPacked(folder)
  writeFileSync(join(project, 'key.pem'), pair.privateKey.export({ type: 'pkcs8', format: 'pem' }))
  cpSync(join(root, 'examples', 'sdk'), project, { recursive: true })
})
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

/**
 * Variables by which `faketime` sets the clock of this process: its children must have the same
 * clock.
 */
const CLOCK = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => name === 'LD_PRELOAD' || name.startsWith('FAKETIME'),
  ),
)
const ENV = () => ({
  ...CLOCK,
  PATH: process.env['PATH'],
  CUSTODY_URL: server.url,
  CUSTODY_API_KEY: API_KEY,
  CUSTODY_KEY: 'key.pem',
  CURSOR: 'cursor.txt',
})

/** Runs a program in the test project. */
async function run(
  node: string,
  file: string,
  words: string[] = [],
  more: Record<string, string> = {},
): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(node, [file, ...words], { cwd: project, env: { ...ENV(), ...more } })
  let [out, err] = ['', '']
  child.stdout.on('data', (text: Buffer) => (out += text.toString()))
  child.stderr.on('data', (text: Buffer) => (err += text.toString()))
  const code = await new Promise<number | null>((resolve) => {
    child.on('close', resolve)
  })
  return { code, out, err }
}

test('publint reports no problems of the package', async () => {
  const { messages, pkg } = await publint({ pkgDir: made, strict: true, pack: false })
  assert.deepEqual(
    messages.map((message) => formatMessage(message, pkg)),
    [],
  )
})

test("the package uses no Node modules and none of the project's own packages", () => {
  for (const file of readdirSync(join(made, 'dist')).filter((name) => name.endsWith('.js')))
    assert.doesNotMatch(
      readFileSync(join(made, 'dist', file), 'utf8'),
      /(?:from|import\() ?"(?:node:|@custody\/)/,
      file,
    )
  assert.deepEqual(
    Object.keys(manifest.dependencies).filter((name) => name.startsWith('@custody/')),
    [],
  )
})

test("a project in strict mode compiles with the package's types, with Node or DOM types", () => {
  writeFileSync(
    join(project, 'use.ts'),
    `
    import { CustodyClient, verifyWebhook, type Transaction, type Decimal, type Invoice } from '@custody/client'
    import { verifyAddress } from '@custody/client/verify-address'
    import { keySigner, type VerifiedApproval } from '@custody/client/approvals'
    const custody = new CustodyClient({ baseUrl: 'https://a.example', apiKey: '', privateKey: '' })
    export const amount: Decimal = (await custody.transaction('t')).amount
    export const listed: AsyncGenerator<Transaction> = custody.eachTransaction({ asset: 'BTC' })
    export const paid: Invoice['inv_status'] = 'Paid'
    const verified: VerifiedApproval = await custody.approvals.verify('t', { callers: {} })
    export const to: string = verified.facts.to
    export const by: string = (await custody.approvals.approve(verified, keySigner(''))).state
    // @ts-expect-error a double cannot hold 18 decimals
    void custody.createTransaction({ asset: 'ETH', amount: 1.5, destination_address: '0x' })
    // @ts-expect-error no such status
    export const odd: Transaction['status'] = 'odd'
    void verifyWebhook<{ id: string }>(new Headers(), '', 'whsec_').data.id
    void verifyAddress
  `,
  )
  const tsc = join(root, 'node_modules', '.bin', 'tsc')
  for (const lib of [
    ['--lib', 'esnext,dom', '--types', ''],
    ['--lib', 'esnext', '--types', 'node', '--typeRoots', join(root, 'node_modules', '@types')],
  ]) {
    const words = [
      '--noEmit',
      '--strict',
      '--exactOptionalPropertyTypes',
      '--module',
      'nodenext',
      '--target',
      'esnext',
      '--checkers',
      '1',
      '--ignoreConfig',
      ...lib,
      'use.ts',
    ]
    const { status, stdout, stderr } = spawnSync(process.execPath, [realpathSync(tsc), ...words], {
      cwd: project,
      encoding: 'utf8',
    })
    assert.equal(status, 0, stdout + stderr)
  }
})

const PAID = {
  id: 't-1',
  status: 'confirmed',
  asset: 'ETH',
  amount: 0.05,
  fee: 0.000021,
  fee_asset: 'ETH',
  hash: '0xabc',
  created_at: 'then',
}

for (const node of nodes) {
  const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim()
  test(`the examples run with Node ${version}`, async () => {
    const exact = (body: object) => ({
      body: JSON.stringify(body).replace('0.05', '0.050000000000000001'),
    })
    server.script(
      exact({ ...PAID, status: 'pending' }),
      { status: 503, body: '{}' },
      exact(PAID),
      exact({ data: [PAID], page: 1, limit: 500, total: 1 }),
    )
    const paid = await run(node, 'transfers.mjs', ['ETH', '0.050000000000000001'])
    assert.deepEqual(paid, {
      code: 0,
      err: '',
      out: 'confirmed 0.050000000000000001 ETH, fee 0.000021 ETH, 0xabc\nthen 0.050000000000000001 confirmed\n',
    })
    assert.match(server.seen[0]?.body ?? '', /"amount":0\.050000000000000001/)
    server.script({
      status: 400,
      body: JSON.stringify({
        code: 'INSUFFICIENT_BALANCE',
        message: 'amount: too much',
        request_id: 'r-1',
      }),
    })
    assert.deepEqual(await run(node, 'transfers.mjs'), {
      code: 1,
      out: '',
      err: 'INSUFFICIENT_BALANCE: amount: too much (r-1)\n',
    })
    const event = {
      id: 'e-1',
      type: 'deposit.confirmed',
      timestamp: 'now',
      object: 'o',
      version: 1,
      data: {},
    }
    server.script(
      {
        body: `id: e-1\nevent: deposit.confirmed\ndata: ${JSON.stringify(event)}\n\n`,
        headers: { 'content-type': 'text/event-stream' },
      },
      { status: 410, body: JSON.stringify({ code: 'CURSOR_EXPIRED', message: 'too old' }) },
    )
    const followed = await run(node, 'events.mjs')
    assert.equal(followed.out, 'now deposit.confirmed o\n')
    assert.match(followed.err, /CURSOR_EXPIRED|too old/)
    assert.equal(readFileSync(join(project, 'cursor.txt'), 'utf8'), 'e-1')
    rmSync(join(project, 'cursor.txt'))
  })

  test(`the example of a compliance service approves what it has verified, with Node ${version}`, async () => {
    const trust = new Nodes((bytes) => new Uint8Array(randomBytes(bytes))).trust()
    const place = await placeOf(trust)
    const rule = allow('pay', { approvals: [{ group: 'compliance', k: 1 }] })
    const document = checkDocument(documentWith([rule], { mode: 'local', nodes: place.nodes }))
    const payee = '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'
    const fixture = {
      document,
      registry: place.registry,
      apiKey: API_KEY,
      privateKey: pair.privateKey,
      now_s: Math.floor(Date.now() / 1000),
      payee,
    }
    const approval = await approvalWith(fixture)
    writeFileSync(join(project, 'trust.json'), JSON.stringify(trust))
    writeFileSync(join(project, 'policy.json'), JSON.stringify({ document }))
    const pem = keyOf('compliance').privateKey.export({ type: 'pkcs8', format: 'pem' })
    writeFileSync(join(project, 'compliance.pem'), pem)
    const known = { asset: 'ETH', to: payee, tag: null, max: '600000000000000000' }
    const write = (name: string, value: unknown) =>
      writeFileSync(join(project, name), JSON.stringify(value))
    write('callers.json', {
      [API_KEY]: pair.publicKey.export({ type: 'spki', format: 'pem' }),
    })
    write('payees.json', [known])
    const answer = (value: object) => ({ body: JSON.stringify(value) })
    const answers = (shown: object) => [answer({ data: [shown], next: null }), answer(shown)]
    const given = answer({ id: approval.id, state: 'approved', needs: [] })
    server.script(...answers(approval), given)
    const approved = await run(node, 'approve.mjs')
    assert.deepEqual([approved.code, approved.err], [0, ''])
    assert.match(approved.out, /is approved: Transfer 0\.6 ETH from sub-account "main" to 0xd8dA/)
    const sent = JSON.parse(server.seen[2]?.body ?? '') as Record<string, unknown>
    assert.deepEqual([sent['by'], sent['decision']], ['compliance', 'approve'])

    // An approval that the platform refuses does not prevent the next one.
    const closed = { status: 409, ...answer({ code: 'APPROVAL_CLOSED', message: 'it is ended' }) }
    const two = answer({ data: [approval, approval], next: null })
    server.script(two, answer(approval), closed, answer(approval), given)
    const continued = await run(node, 'approve.mjs')
    assert.deepEqual(
      [continued.code, continued.err],
      [1, `${approval.id}: APPROVAL_CLOSED: it is ended\n`],
    )
    assert.match(continued.out, /is approved: /)

    const uri = `/dac/v1/invoices/inv_${'0a'.repeat(16)}/refund`
    const refund = await approvalWith({ ...fixture, action: 'refund', uri })
    for (const [shown, payees] of [
      [approval, []],
      [approval, [{ ...known, asset: 'BTC' }]],
      [approval, [{ ...known, tag: '7' }]],
      [approval, [{ ...known, max: '599999999999999999' }]],
      [refund, [known]],
    ] as const) {
      write('payees.json', payees)
      server.script(...answers(shown))
      assert.match((await run(node, 'approve.mjs')).out, /is left to people: /)
    }
    const facts = {
      ...(approval.facts as object),
      to: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    }
    server.script(...answers({ ...approval, statement: { ...approval.statement, facts } }))
    assert.deepEqual(await run(node, 'approve.mjs'), {
      code: 1,
      out: '',
      err: `${approval.id}: REQUEST: the signed request of the caller does not match: the destination differs\n`,
    })
    write('callers.json', {})
    server.script(...answers(approval))
    assert.match((await run(node, 'approve.mjs')).err, /CALLER: the request is of the API key/)
    assert.equal(server.seen.length, 2)
  })

  test(`the packed package verifies addresses of every family, with Node ${version}`, async () => {
    const certified = new Nodes((bytes) => new Uint8Array(randomBytes(bytes)))
    const keys = certified.keys()
    writeFileSync(join(project, 'trust.json'), JSON.stringify({ trust: certified.trust(), keys }))
    // One address of each family, derived by this repository's code.
    const registry = loadRegistry('local')
    const natives = registry.networks.filter(
      (network, at, all) => all.findIndex(({ family }) => family === network.family) === at,
    )
    const addresses = Object.fromEntries(
      natives.map((network) => {
        const key = keys.keys.find(({ curve }) => curve === network.curve)
        const bytes = (hex: string | undefined) => new Uint8Array(Buffer.from(String(hex), 'hex'))
        return [
          network.native_asset,
          addressAt(
            network,
            { publicKey: bytes(key?.public_key), chainCode: bytes(key?.chain_code) },
            [1, network.chain_index, 0],
          ),
        ]
      }),
    )
    assert.equal(natives.length, 7)
    writeFileSync(
      join(project, 'check.mjs'),
      `
      import { readFileSync } from 'node:fs'
      import { verifyAddress, VerificationError } from '@custody/client/verify-address'
      const { trust, keys } = JSON.parse(readFileSync('trust.json', 'utf8'))
      for (const [asset, address] of Object.entries(JSON.parse(process.argv[2]))) {
        const { path } = await verifyAddress(trust, keys, asset, address, { indexMax: 1 })
        const other = await verifyAddress(trust, keys, asset, address, { path: [1, path[1], 1], indexMax: 1 }).catch((error) => error)
        console.log(asset, path.length, path[2], other instanceof VerificationError ? other.code : other)
      }`,
    )
    const { out, err } = await run(node, 'check.mjs', [JSON.stringify(addresses)])
    // If addresses have tags, a wallet has only one address, so another index is not a valid path.
    const expected = natives.map(
      ({ native_asset: asset, family }) =>
        `${asset} 3 0 ${['xrp', 'stellar'].includes(family) ? 'PATH' : 'ADDRESS'}`,
    )
    assert.deepEqual([out.trim().split('\n'), err], [expected, ''])
  })
}
