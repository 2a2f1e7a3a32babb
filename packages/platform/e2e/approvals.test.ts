// Transfers that require approvals by the policy of their workspace: the nodes are real, the people
// approve by command and by API.
import assert from 'node:assert/strict'
import { createPublicKey, randomUUID, sign } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import {
  documentHash,
  readDocument,
  statementBytes,
  type PolicyDocument,
  type Statement,
} from '@custody/policy'
import { assertionOf, newPasskey, signWithPasskey, UP } from '../../policy/testing/passkeys.ts'
import {
  keySigner,
  verifyApproval,
  verifyPolicy,
  type VerifiedApproval,
} from '@custody/client/approvals'
import { clientOf, readTrustFile, type Config } from '../../approver/src/config.ts'
import { callsOf } from '../../approver/src/server/calls.ts'
import { platformOf } from '../../approver/src/server/platform.ts'
import { Documents } from '../../approver/src/verify/documents.ts'
import { placeOf } from '../../approver/src/verify/place.ts'
import type { ApprovalDetailView, ChallengeView } from '../../approver/src/views.ts'
import { readSigningKey } from '../src/server/operator/policy/files.ts'
import { testEmittedEvents } from '../testing/event-assertions.ts'
import {
  assertConfirmed,
  balance,
  call,
  fundedWallet,
  PRIVATE_KEY,
  PUBLIC_KEY,
  terminal,
  TestPlatform,
  transferBody,
  type Transfer,
  type User,
} from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
const PEOPLE = ['alice', 'bob', 'carol', 'safe']
/** Carol's second key, as her authenticator holds it. */
const PASSKEY = newPasskey('p1')
const SINK = '0x70997970C51812dc3A010C7d01b50e0d17dc79C8'
let user: User
/** Another sub-account of the workspace, whose deposits are forwarded. */
let shop: User
/** ID of its forwarding rule, which has forwarded once before the policy was installed. */
let oldRule = ''

/** Runs a command that must succeed, and returns its result. */
async function result(...words: string[]): Promise<Record<string, never>> {
  const { status, stdout, stderr } = await platform.cli(...words, '--json')
  assert.equal(status, 0, `${words.join(' ')}\n${stdout}${stderr}`)
  return JSON.parse(stdout.trim().split('\n').at(-1) as string) as Record<string, never>
}

const fileOf = (name: string): string => join(platform.home, `${name}.pem`)
const by = (name: string): string[] => ['--as', name, '--key', fileOf(name)]

/**
 * Installs a policy: up to 0.5 ETH without approvals, up to 10 ETH, stakes of up to 500 TRX and forwards
 * of ETH and TRX with those of two people, and any amount to the workspace's own addresses.
 */
async function installPolicy(): Promise<void> {
  const spki = new Map<string, string>()
  for (const name of PEOPLE) {
    await result('keygen', '--type', 'ed25519', '--out', fileOf(name))
    spki.set(
      name,
      createPublicKey(readFileSync(`${fileOf(name)}.pub`, 'utf8'))
        .export({ type: 'spki', format: 'der' })
        .toString('base64'),
    )
  }
  const place = await result('policy', 'place', '--workspace', 'approved')
  const document = {
    kind: 'custody-policy',
    v: 1,
    mode: place['mode'],
    workspace: 'approved',
    number: 1,
    previous: '0'.repeat(64),
    nodes: place['nodes'],
    people: PEOPLE.map((id) => ({
      id,
      name: id,
      api_keys: id === 'alice' ? [user.apiKey] : [],
      keys: [
        { id: 'k1', kind: 'key', alg: 'Ed25519', spki: spki.get(id) },
        ...(id === 'carol' ? [PASSKEY.key] : []),
      ],
    })),
    groups: { admins: PEOPLE, approvers: ['alice', 'bob', 'carol'] },
    change: { approvals: [{ group: 'admins', k: 2 }], delay_s: 3600, veto: 'admins' },
    stop: { group: 'admins' },
    resume: { approvals: [{ group: 'admins', k: 2 }] },
    rules: [
      {
        id: 'small',
        effect: 'allow',
        match: { action: ['transfer'], assets: 'any' },
        amount: { max: { ETH: '0.5', USDT_ETH: '100' } },
      },
      {
        id: 'large',
        effect: 'allow',
        match: { action: ['transfer'], assets: 'any' },
        amount: { max: { ETH: '10', USDT_ETH: '10000' } },
        approvals: [{ group: 'approvers', k: 2 }],
      },
      {
        id: 'stakes',
        effect: 'allow',
        match: { action: ['stake'], assets: ['TRX'] },
        amount: { max: { TRX: '500' } },
        approvals: [{ group: 'approvers', k: 2 }],
      },
      {
        id: 'own',
        effect: 'allow',
        match: { action: ['transfer'], assets: 'any', to: { own: 'workspace' } },
      },
      {
        id: 'forwards',
        effect: 'allow',
        match: { action: ['forward'], assets: ['ETH', 'TRX'] },
        approvals: [{ group: 'approvers', k: 2 }],
        initiator: true,
      },
    ],
  }
  const file = join(platform.home, 'policy.json')
  writeFileSync(file, JSON.stringify(document))
  for (const name of PEOPLE) await result('policy', 'sign', file, ...by(name))
  addPossession(file)
  await result('policy', 'install', '--workspace', 'approved', '--file', file)
}

/** Adds the proof of possession of Carol's passkey to a policy file. */
function addPossession(file: string): void {
  const { document, possessions } = JSON.parse(readFileSync(file, 'utf8')) as {
    document: Record<string, never>
    possessions: object[]
  }
  const { mode, workspace, nodes, number } = document
  const policy = { number, hash: documentHash(readDocument(JSON.stringify(document))) }
  const common = { v: 1 as const, mode, workspace, nodes, by: 'carol', key: 'p1', policy }
  const signed = signWithPasskey(PASSKEY, { kind: 'possession', ...common } as never)
  writeFileSync(file, JSON.stringify({ document, possessions: [...possessions, signed] }))
}

before(async () => {
  await platform.start()
  user = await platform.user('approved')
  await fundedWallet(platform, user, 'ETH', '50')
  await forwardOnce()
  await installPolicy()
})
after(() => platform.remove())

const send = (amount: string, more: Record<string, unknown> = {}, to = SINK) =>
  call<Transfer & { code?: string }>(
    user,
    'POST',
    '/dac/v1/transaction',
    transferBody('ETH', amount, to, more),
  )
const read = async (id: string) =>
  (
    await call<Transfer & { waiting: { code: string } | null }>(
      user,
      'GET',
      `/dac/v1/transaction/${id}`,
    )
  ).body
/** Waits until a transfer waits for approvals. */
const waits = (id: string) =>
  waitFor(`${id} APPROVAL`, async () => {
    const now = await read(id)
    if (now.status !== 'pending') throw new Error(`${now.sub_status}: ${now.failure_reason}`)
    return now.sub_status === 'APPROVAL' ? now : null
  })

/**
 * Makes a transfer due that waits for approvals, once its request is open and no worker is judging it:
 * a worker would overwrite the time.
 * @param change SQL of further columns that are set
 */
const wake = (id: string, change = '') =>
  waitFor(`${id} is not being judged`, async () => {
    const { database } = platform
    const woken = await database.one(
      `update transactions t set ${change} next_run_at = $2
       where id = $1 and state = 'APPROVAL' and lease_token is null and exists (
         select 1 from approval_requests r where r.transaction_id = t.id) returning id`,
      [id, database.now()],
    )
    return woken ?? null
  })

interface Shown {
  id: string
  state: string
  action: string
  planned_fee: string
  memo?: string
  requested_by?: { api_key: string; name: string | null }
  facts: { amount: string; to: string; sub_account: string; fee_max: string }
  needs: { group: string; k: string; have: string }[]
  have: { by: string; decision: string }[]
  statement: Record<string, unknown>
}
const show = async (id: string) => (await call<Shown>(user, 'GET', `/dac/v1/approvals/${id}`)).body

/** Returns a decision without its proof, and the statement that proves it. */
async function unproven(id: string, fields: Record<string, unknown>) {
  const at = Math.floor(Date.now() / 1000)
  const { text } = await call(user, 'GET', `/dac/v1/approvals/${id}`)
  const { statement } = JSON.parse(text) as Shown
  const own = { decision: 'approve', key: 'k1', at, expires: at + 3600, ...fields }
  return { own, statement: { ...statement, ...own, kind: 'approval' } as unknown as Statement }
}
/** Returns a person's signed decision, as the API accepts it. */
async function decision(id: string, name: string, fields: Record<string, unknown> = {}) {
  const { own, statement } = await unproven(id, { by: name, ...fields })
  const { privateKey } = readSigningKey(fileOf(name))
  return { ...own, signature: sign(null, statementBytes(statement), privateKey).toString('base64') }
}
/** Returns Carol's decision by her passkey. */
async function passkeyDecision(id: string, flags?: number, fields: Record<string, unknown> = {}) {
  const { own, statement } = await unproven(id, { by: 'carol', key: 'p1', ...fields })
  const parts = flags === undefined ? {} : { flags }
  return { ...own, passkey: assertionOf(PASSKEY, statement, parts) }
}
const decide = (id: string, body: object, as: User = user) =>
  call<{ state: string; code?: string }>(
    as,
    'POST',
    `/dac/v1/approvals/${id}`,
    body as Record<string, unknown>,
  )
const auditIsClean = async () => {
  const report = (await platform.operator('audit')) as { ok: boolean; differences: unknown[] }
  assert.ok(report.ok, JSON.stringify(report.differences))
}

test('a transfer waits until two people have approved it, and delays no other transfer', async () => {
  const large = (await send('0.6', { memo: 'supplier 2' })).body
  const waiting = await waits(large.id)
  assert.equal(waiting.waiting?.code, 'APPROVAL')
  const listed = await call<{ data: Shown[] }>(user, 'GET', '/dac/v1/approvals?state=open')
  const [entry] = listed.body.data
  const stated = { memo: 'supplier 2', requested_by: { api_key: user.apiKey, name: null } }
  for (const { memo, requested_by } of [entry!, await show(large.id)])
    assert.deepEqual({ memo, requested_by }, stated)
  assert.deepEqual(
    [entry?.id, entry?.action, entry?.facts.amount, entry?.facts.to, entry?.needs, entry?.have],
    [
      large.id,
      'transfer',
      '600000000000000000',
      SINK,
      [{ group: 'approvers', k: '2', have: '0' }],
      [],
    ],
  )
  const { planned_fee, facts } = await show(large.id)
  assert.ok(0n < BigInt(planned_fee) && BigInt(planned_fee) < BigInt(facts.fee_max), planned_fee)
  const small = (await send('0.4')).body
  await assertConfirmed(user, small.id)

  const first = await result('approve', large.id, ...by('bob'))
  assert.deepEqual(
    [first['state'], first['needs']],
    ['open', [{ group: 'approvers', k: 2, have: 1 }]],
  )
  assert.equal((await read(large.id)).sub_status, 'APPROVAL')
  const listing = await platform.cli('approvals', '--workspace', 'approved')
  assert.match(listing.stdout, /Transfer 0.6 ETH from sub-account "main" to 0x70997970/)
  assert.match(listing.stdout, /approvals so far: 1 of 2 of approvers/)

  const carol = await passkeyDecision(large.id)
  const given = await decide(large.id, carol)
  assert.deepEqual([given.status, given.body.state], [200, 'approved'], JSON.stringify(given.body))
  await assertConfirmed(user, large.id)
  const repeated = await decide(large.id, carol)
  assert.deepEqual([repeated.status, repeated.body.state], [200, 'approved'])
  const closed = await decide(large.id, { ...carol, at: carol.at - 1 })
  assert.deepEqual([closed.status, closed.body.code], [409, 'APPROVAL_CLOSED'])
  assert.equal((await show(large.id)).state, 'approved')
  await auditIsClean()
})

test('a token transfer takes no fuel until it is approved', async () => {
  await fundedWallet(platform, user, 'USDT_ETH', '500')
  const body = transferBody('USDT_ETH', '200', SINK)
  const { id } = (await call<Transfer>(user, 'POST', '/dac/v1/transaction', body)).body
  await waits(id)
  const fuel = () =>
    platform.database.one<{ count: string }>(
      `select count(*) from transactions where parent_id = $1 and kind = 'FUEL'`,
      [id],
    )
  assert.equal((await fuel())?.count, '0')
  for (const name of ['bob', 'carol']) await result('approve', id, ...by(name))
  await assertConfirmed(user, id)
  await auditIsClean()
})

/** Creates the settings of Carol's approver, with an API key of hers and the trust file. */
async function createConfig(): Promise<Config> {
  const path = (name: string) => join(platform.home, name)
  writeFileSync(path('carol-api.pem'), PRIVATE_KEY)
  writeFileSync(path('carol-api.pem.pub'), PUBLIC_KEY)
  const made = await result(
    'api-user',
    'create',
    '--workspace',
    'approved',
    '--sub-account',
    'main',
    '--role',
    'full',
    '--public-key',
    path('carol-api.pem.pub'),
    '--trust-file',
    path('carol-trust.json'),
  )
  return {
    version: 1,
    person: 'carol',
    platform: platform.base,
    api_key: String(made['api_key']),
    private_key_file: path('carol-api.pem'),
    trust_file: path('carol-trust.json'),
    document_file: null,
    origin: String(PASSKEY.key.origins[0]),
    host: null,
    port: 0,
  }
}

let created: Promise<Config> | undefined
const carolsConfig = (): Promise<Config> => (created ??= createConfig())

/** Carol's approver: its server, with the platform behind it and her authenticator before it. */
function approverOf(config: Config) {
  const trust = readTrustFile(config)
  const calls = callsOf({
    config,
    place: placeOf(trust, config.platform),
    trust,
    documents: new Documents(platform.home, null),
    platform: platformOf(clientOf(config)),
    now: Date.now,
  })
  return <T>(name: string, input: Record<string, unknown>) => calls.get(name)!(input) as Promise<T>
}

test('a person approves with a passkey at the approver, which verifies what the platform returns', async () => {
  const config = await carolsConfig()
  const ask = approverOf(config)
  const { id } = (await send('0.8')).body
  await waits(id)
  const { data } = await ask<{ data: { id: string; sentences: string[] }[] }>('approvals', {})
  assert.match(data.find((each) => each.id === id)?.sentences[0] ?? '', /^Transfer 0.8 ETH from/)
  const shown = await ask<ApprovalDetailView>('approval', { id })
  assert.deepEqual([shown.refusal, shown.keys.map(({ id: key }) => key)], [null, ['p1']])
  const { review } = shown
  const begun = await ask<ChallengeView>('challenge', {
    id,
    decision: 'approve',
    key: 'p1',
    review,
  })
  const { statement } = await unproven(id, { by: 'carol', key: 'p1' })
  const client = { challenge: begun.challenge }
  const given = await ask<{ state: string }>('decide', {
    attempt: begun.attempt,
    ...assertionOf(PASSKEY, statement, { client }),
  })
  assert.equal(given.state, 'open')
  await result('approve', id, ...by('bob'))
  await assertConfirmed(user, id)
  const after = await ask<ApprovalDetailView>('approval', { id })
  assert.deepEqual(after.decisions.map((each) => each.by).sort(), ['bob', 'carol'])
  await approveBySdk(config)
})

/** Services approve by the SDK, and an auditor verifies the stored approval offline. */
async function approveBySdk(config: Config): Promise<void> {
  const custody = clientOf(config)
  const callers = { [user.apiKey]: PUBLIC_KEY }
  const documents = [readFileSync(join(platform.home, 'policy.json'), 'utf8')]
  const { id } = (await send('0.9', { fee_level: 'high' })).body
  await waits(id)
  const policies: VerifiedApproval['policy'][] = []
  for (const [name, options] of [
    ['bob', { documents, callers }],
    ['carol', {}],
  ] as const) {
    const verified = await custody.approvals.verify(id, options)
    policies.push(verified.policy)
    assert.match(verified.sentences[0] ?? '', /^Transfer 0.9 ETH from/)
    await custody.approvals.approve(verified, keySigner(readFileSync(fileOf(name), 'utf8')))
  }
  assert.deepEqual(
    policies.map(({ is_own, stated_by }) => [is_own, stated_by.length >= 2]),
    [
      [true, false],
      [false, true],
    ],
  )
  await assertConfirmed(user, id)
  const { text } = await call(user, 'GET', `/dac/v1/approvals/${id}`)
  const approval = JSON.parse(text) as object
  const trust = readTrustFile(config)
  await statedByNodes(config)
  const audited = await verifyApproval({ approval, trust, documents, callers })
  assert.deepEqual(
    [audited.state, audited.rule, audited.is_complete, audited.approved_by.toSorted()],
    ['approved', 'large', true, ['bob', 'carol']],
  )
}

/** The SDK verifies what the real nodes state, which no platform can repeat later or elsewhere. */
async function statedByNodes(config: Config): Promise<void> {
  const stated = await clientOf(config).policy.verify()
  assert.ok(stated.stated_by.length >= 2)
  const { text } = await call(user, 'GET', '/dac/v1/policy')
  const policy = JSON.parse(text) as { hash: string; statements: { at: number }[] }
  assert.equal(stated.hash, policy.hash)
  const trust = readTrustFile(config)
  const now_s = Math.max(...policy.statements.map(({ at }) => at))
  assert.equal((await verifyPolicy({ policy, trust, now_s })).hash, policy.hash)
  const later = policy.statements.map((each) => ({ ...each, at: each.at + 301 }))
  const [first, ...others] = trust.nodes
  const renumbered = [...others, first!].map((each, at) => ({ ...each, node: at + 1 }))
  for (const [question, code] of [
    [{ now_s: now_s + 301 }, 'NOT_STATED'],
    [{ now_s: now_s + 301, policy: { ...policy, statements: later } }, 'NOT_STATED'],
    [{ policy: { ...policy, statements: policy.statements.slice(0, 1) } }, 'NOT_STATED'],
    [{ trust: { ...trust, workspace: 'other' } }, 'OTHER_PLACE'],
    [{ trust: { ...trust, nodes: renumbered } }, 'OTHER_PLACE'],
  ] as const)
    await assert.rejects(verifyPolicy({ policy, trust, now_s, ...question }), { code })
}

test('of two approvals that arrive together, one completes the transfer', async () => {
  const { id } = (await send('0.7')).body
  await waits(id)
  const both = [await decision(id, 'bob'), await passkeyDecision(id)]
  const answers = await Promise.all(both.map((each) => decide(id, each)))
  assert.deepEqual(
    answers.map(({ status, body }) => [status, body.state]).sort(),
    [
      [200, 'approved'],
      [200, 'open'],
    ],
    JSON.stringify(answers.map(({ body }) => body)),
  )
  await assertConfirmed(user, id)
  const shown = await show(id)
  assert.deepEqual(shown.needs, [{ group: 'approvers', k: '2', have: '2' }])
  assert.deepEqual(shown.have.map(({ by: person }) => person).sort(), ['bob', 'carol'])
})

test('a transfer to an own address passes by the rule for own addresses', async () => {
  const addressOf = async (owner: User, asset: string) => {
    await fundedWallet(platform, owner, asset, '1')
    const made = await call<{ address: string }>(owner, 'POST', '/dac/v1/address', { asset })
    assert.equal(made.status, 200, JSON.stringify(made.body))
    return made.body.address
  }
  const savings = await platform.user('approved', { subAccount: 'savings' })
  const own = await send('12', {}, await addressOf(savings, 'ETH'))
  assert.equal(own.status, 200, JSON.stringify(own.body))
  await assertConfirmed(user, own.body.id)
  // The gas funding of a token transfer is judged by the transfer that it is for.
  const body = transferBody('USDT_ETH', '150', await addressOf(savings, 'USDT_ETH'))
  const tokens = (await call<Transfer>(user, 'POST', '/dac/v1/transaction', body)).body
  await assertConfirmed(user, tokens.id)
  const evaluated = await call<{ effect: string; via: string }>(
    user,
    'POST',
    '/dac/v1/policy/evaluate',
    { method: 'POST', uri: '/dac/v1/transaction', body: JSON.parse(body) as object },
  )
  assert.deepEqual(
    [evaluated.body.effect, evaluated.body.via],
    ['allow', 'own'],
    JSON.stringify(evaluated.body),
  )
  const foreign = await send('12', {}, await addressOf(await platform.user('stranger-own'), 'ETH'))
  assert.deepEqual([foreign.status, foreign.body.code], [403, 'POLICY_DENIED'])
})

test('a rejection ends the transfer with two voids and the money back', async () => {
  const before = (await balance(user, 'ETH')).balance
  const { id } = (await send('2')).body
  await waits(id)
  await result('approve', id, ...by('bob'))
  const rejected = await result('approve', id, ...by('carol'), '--reject')
  assert.equal(rejected['state'], 'rejected')
  const failed = await terminal(user, id)
  assert.equal(failed.status, 'failed')
  assert.match(failed.failure_reason ?? '', /^APPROVAL_REJECTED: carol rejected the transfer$/)
  assert.equal((failed['voids'] as object[]).length, 3)
  assert.equal((await balance(user, 'ETH')).balance, before)
  assert.equal((await show(id)).state, 'rejected')
  const late = await decide(id, await decision(id, 'bob'))
  assert.deepEqual([late.status, late.body.code], [409, 'APPROVAL_CLOSED'])
  await auditIsClean()
})

test('an expired request ends the transfer, and a cancelled one can no longer be approved', async () => {
  const [expired, cancelled] = [(await send('3')).body.id, (await send('4')).body.id]
  await waits(expired)
  await waits(cancelled)
  // A transfer that was returned from signing waits before its request is open.
  await waitFor('the request is open', () =>
    platform.database.one(
      `update approval_requests set expires_at = created_at where transaction_id = $1
       returning transaction_id`,
      [expired],
    ),
  )
  // A worker may be judging the transfer at this moment, by the earlier or by the new time.
  await waitFor('the expired request is judged', async () => {
    const { database } = platform
    await database.query(
      `update transactions set next_run_at = $2 where id = $1 and state = 'APPROVAL'
         and lease_token is null`,
      [expired, database.now()],
    )
    const row = await database.one<{ state: string }>(
      'select state from transactions where id = $1',
      [expired],
    )
    return row?.state !== 'APPROVAL' || null
  })
  const failed = await terminal(user, expired)
  assert.match(failed.failure_reason ?? '', /^APPROVAL_EXPIRED: /)
  assert.equal((failed['voids'] as object[]).length, 3)
  assert.equal((await show(expired)).state, 'expired')
  assert.equal(
    (await call(user, 'POST', `/dac/v1/transaction/${cancelled}/cancel`, {})).status,
    200,
  )
  assert.equal((await terminal(user, cancelled)).sub_status, 'CANCELLED')
  const late = await decide(cancelled, await decision(cancelled, 'bob'))
  assert.deepEqual([late.status, late.body.code], [409, 'APPROVAL_CLOSED'])
  assert.equal((await show(cancelled)).state, 'ended')
})

test('a stake waits for its approvals, and a rejected one returns the TRX', async () => {
  const address = await fundedWallet(platform, user, 'TRX', '2000')
  const stake = (amount: number, to = address) =>
    call<Transfer & { code?: string }>(user, 'POST', '/dav/v1/stake', {
      asset: 'TRX',
      address: to,
      resource: 'ENERGY',
      amount,
      sequence_id: randomUUID(),
    })
  const denied = await stake(501)
  assert.deepEqual([denied.status, denied.body.code], [403, 'POLICY_DENIED'], denied.text)
  const free = async () => (await balance(user, 'TRX')).balance
  const before = await free()
  const [wanted, unwanted] = [(await stake(400)).body.id, (await stake(300)).body.id]
  for (const id of [wanted, unwanted]) assert.equal((await waits(id)).waiting?.code, 'APPROVAL')
  const { action, facts } = await show(wanted)
  assert.deepEqual([action, facts.amount, facts.to], ['stake', '400000000', address])
  const { request, rule } = await clientOf(await carolsConfig()).approvals.verify(wanted, {
    callers: { [user.apiKey]: PUBLIC_KEY },
  })
  assert.deepEqual([request.is_signature_verified, rule], [true, 'stakes'])
  const rejected = await result('approve', unwanted, ...by('carol'), '--reject')
  assert.equal(rejected['state'], 'rejected')
  const failed = await terminal(user, unwanted)
  assert.match(failed.failure_reason ?? '', /^APPROVAL_REJECTED: carol rejected the stake; /)
  assert.equal((failed['voids'] as object[]).length, 3)
  // A database that claims that the other one needs no approvals gets nothing signed.
  await wake(wanted, "state = 'QUEUED',")
  await waits(wanted)
  await result('approve', wanted, ...by('bob'))
  assert.equal((await decide(wanted, await passkeyDecision(wanted))).body.state, 'approved')
  assert.equal((await terminal(user, wanted)).status, 'confirmed')
  assert.equal(Number(before) - Number(await free()), 400)
  await auditIsClean()
})

test('a transfer that no rule allows is refused with the reason, and nothing is created', async () => {
  const sequence_id = randomUUID()
  const before = (await balance(user, 'ETH')).balance
  for (let time = 0; time < 2; time++) {
    const { status, body } = await send('11', { sequence_id })
    assert.deepEqual([status, body.code], [403, 'POLICY_DENIED'], JSON.stringify(body))
    assert.match(JSON.stringify(body), /amount: 11 ETH is above 10/)
  }
  const list = await call<{ total: string }>(
    user,
    'GET',
    `/dac/v1/transactions?sequence_id=${sequence_id}`,
  )
  assert.equal(list.body.total, '0')
  assert.equal((await balance(user, 'ETH')).balance, before)
})

test('attack: what does not count as an approval is refused, and nothing is stored', async () => {
  const { id } = (await send('1')).body
  await waits(id)
  const bob = await decision(id, 'bob')
  const tries: [string, object, number, string][] = [
    ['the owner of the API key', await decision(id, 'alice'), 400, 'APPROVAL_REFUSED'],
    ['a person of no group of the rule', await decision(id, 'safe'), 400, 'APPROVAL_REFUSED'],
    [
      'a rejection by the same',
      await decision(id, 'safe', { decision: 'reject' }),
      400,
      'APPROVAL_REFUSED',
    ],
    ['a signature of another person', { ...bob, by: 'carol' }, 400, 'APPROVAL_REFUSED'],
    ['another time', { ...bob, expires: bob.expires + 1 }, 400, 'APPROVAL_REFUSED'],
    ['a decision that was not signed', { ...bob, decision: 'reject' }, 400, 'APPROVAL_REFUSED'],
    ['no signature', { ...bob, signature: '' }, 400, 'APPROVAL_REFUSED'],
    ['no proof', { ...bob, signature: undefined }, 400, 'APPROVAL_REFUSED'],
    [
      'an assertion in place of a signature',
      { ...(await passkeyDecision(id)), by: 'bob', key: 'k1' },
      400,
      'APPROVAL_REFUSED',
    ],
    ['a passkey without verification', await passkeyDecision(id, UP), 400, 'APPROVAL_REFUSED'],
    [
      'an assertion about another decision',
      { ...(await passkeyDecision(id)), decision: 'reject' },
      400,
      'APPROVAL_REFUSED',
    ],
    [
      'an assertion with a missing field',
      { ...(await passkeyDecision(id)), passkey: { client_data: 'e30', signature: 'AAAA' } },
      400,
      'INVALID_REQUEST',
    ],
    [
      'an expired approval',
      await decision(id, 'bob', { at: bob.at - 100, expires: bob.at - 50 }),
      400,
      'APPROVAL_REFUSED',
    ],
    ['an unknown field', { ...bob, extra: 1 }, 400, 'UNKNOWN_FIELD'],
    ['a missing field', { ...bob, key: undefined }, 400, 'INVALID_REQUEST'],
    ['a decimal time', { ...bob, at: 1.5 }, 400, 'INVALID_REQUEST'],
  ]
  for (const [name, body, status, code] of tries) {
    const answer = await decide(id, body)
    assert.deepEqual(
      [answer.status, answer.body.code],
      [status, code],
      `${name}: ${JSON.stringify(answer.body)}`,
    )
  }
  assert.deepEqual((await show(id)).have, [])
  // The decision carries its own signature, so any key of the sub-account may pass it on.
  for (const role of ['read-only', 'approve'] as const) {
    const carrier = await platform.user('approved', { role })
    assert.equal((await decide(id, bob, carrier)).status, 200)
    assert.equal((await decide(id, { ...bob, by: 'carol' }, carrier)).status, 400)
  }
  const other = await platform.user('approved', { subAccount: 'other' })
  const stranger = await platform.user('stranger')
  for (const caller of [other, stranger]) {
    assert.equal((await decide(id, await decision(id, 'carol'), caller)).status, 404)
    assert.equal((await call(caller, 'GET', `/dac/v1/approvals/${id}`)).status, 404)
    const listed = await call<{ data: object[] }>(caller, 'GET', '/dac/v1/approvals')
    assert.deepEqual(listed.body.data, [])
  }
  await result('approve', id, ...by('carol'), '--reject')
  await terminal(user, id)
})

test('attack: a database that claims approvals gets nothing signed', async () => {
  const { database } = platform
  const [approved, target] = [(await send('1')).body.id, (await send('5')).body.id]
  await waits(approved)
  await waits(target)
  await result('approve', approved, ...by('bob'))
  // Approvals copied from another transfer, and a state that skips the approval.
  await database.query(
    `insert into approvals select workspace_id, $2, person, decision, key, signed_at, expires_at,
       signature, created_at from approvals where transaction_id = $1`,
    [approved, target],
  )
  await database.query(
    `insert into approvals select workspace_id, transaction_id, 'carol', decision, key, signed_at,
       expires_at, signature, created_at from approvals where transaction_id = $1`,
    [target],
  )
  await wake(target, "state = 'QUEUED',")
  await waits(target)
  const signed = await database.query(
    'select 1 from chain_transactions where transaction_id = $1 and hash is not null',
    [target],
  )
  assert.deepEqual(signed, [])
  assert.equal((await show(target)).needs[0]?.have, '0')
  for (const id of [approved, target]) {
    await result('approve', id, ...by('carol'), '--reject')
    assert.equal((await terminal(user, id)).status, 'failed')
  }
  await auditIsClean()
})

const PATH = '/dac/v1/auto-forwarding'
interface Rule {
  id: string
  status: string
  waiting: string
  reason: string | null
  needs?: { group: string; k: string; have: string }[]
  code?: string
}
const ruleBody = (asset: string, destination_address: string) => ({
  asset,
  min_amount: '1',
  daily_cap: '100',
  destination_address,
  expires_at: new Date(Date.now() + 7 * 86_400_000).toISOString(),
})
const makeRule = (asset: string, destination_address: string) =>
  call<Rule>(shop, 'POST', PATH, ruleBody(asset, destination_address))
const readRule = async (id: string) => (await call<Rule>(shop, 'GET', `${PATH}/${id}`)).body
const reaches = (id: string, status: string) =>
  waitFor(`rule ${id} ${status}`, async () => {
    const rule = await readRule(id)
    return rule.status === status ? rule : null
  })
const forwarded = (id: string, count: number) =>
  waitFor(`${count} forwards of ${id}`, async () => {
    const { data } = (await call<{ data: Transfer[] }>(shop, 'GET', `${PATH}/${id}/history`)).body
    return data.filter(({ status }) => status === 'confirmed').length >= count ? data : null
  })
async function deposit(amount: string): Promise<void> {
  const address = (
    await call<{ address: string }>(shop, 'POST', '/dac/v1/address', { asset: 'ETH' })
  ).body.address
  await platform.operator('devnet', { command: 'fund', asset: 'ETH', address, amount })
}
const eventsOf = async (id: string) =>
  (
    await platform.database.query<{ type: string; state: string }>(
      `select type, payload::jsonb->>'state' state from events
       where payload::jsonb->>'id' = $1 and type like 'approval.%' order by id`,
      [id],
    )
  ).map(({ type, state }) => `${type} ${state}`)

/** Creates a rule in another sub-account, which forwards a deposit. */
async function forwardOnce(): Promise<void> {
  shop = await platform.user('approved', { subAccount: 'shop' })
  await fundedWallet(platform, shop, 'ETH', '5')
  const { id, status } = (await makeRule('ETH', SINK)).body
  assert.equal(status, 'active')
  await deposit('2')
  await forwarded(id, 1)
  oldRule = id
}

test('a rule from before the policy waits until two people have approved it once', async () => {
  const id = oldRule
  await deposit('3')
  const waiting = await reaches(id, 'awaiting_approval')
  assert.deepEqual(waiting.needs, [{ group: 'approvers', k: '2', have: '0' }])
  assert.match(waiting.reason ?? '', /requires approvals that are missing: 2 of approvers/)
  const listing = await platform.cli('approvals', '--workspace', 'approved')
  assert.match(listing.stdout, /Forward incoming ETH from sub-account "shop" to 0x70997970/)
  await result('approve', id, ...by('alice'))
  const half = await waitFor('one approval', async () => {
    const rule = await readRule(id)
    return rule.needs?.[0]?.have === '1' ? rule : null
  })
  assert.equal(half.status, 'awaiting_approval')
  // Funds that arrive meanwhile wait too.
  await deposit('1')
  await result('approve', id, ...by('bob'))
  await reaches(id, 'active')
  await waitFor('everything is forwarded', async () => Number((await readRule(id)).waiting) === 0)
  assert.deepEqual(await eventsOf(id), [
    'approval.requested open',
    'approval.updated open',
    'approval.updated open',
    'approval.closed approved',
  ])
  const before = (await forwarded(id, 2)).length
  await deposit('1')
  await forwarded(id, before + 1)
})

test('the suspension of an approver pauses the rule until others approve it', async () => {
  const id = oldRule
  const before = (await forwarded(id, 1)).length
  const target = ['--workspace', 'approved', '--person', 'bob', '--key-id', 'k1']
  await result('policy', 'suspend', ...target, ...by('safe'))
  await deposit('2')
  await reaches(id, 'awaiting_approval')
  for (const name of ['alice', 'carol']) await result('approve', id, ...by(name))
  await forwarded(id, before + 1)
  assert.equal((await readRule(id)).status, 'active')
})

test('an evaluation states what the policy would decide about a new rule, and creates none', async () => {
  const rules = async () => (await call<{ data: Rule[] }>(shop, 'GET', PATH)).body.data.length
  const before = await rules()
  const evaluate = async (asset: string) => {
    const request = { method: 'POST', uri: PATH, body: ruleBody(asset, SINK) }
    const { status, body } = await call<{
      effect: string
      via: string | null
      needs: { group: string; k: string; have: string }[]
      tried: { rule: string; fits: boolean; why: string | null }[]
      refusal: { code: string; message: string } | null
      by: string[]
    }>(shop, 'POST', '/dac/v1/policy/evaluate', request)
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.by.length, 2)
    return body
  }
  const approve = await evaluate('ETH')
  assert.deepEqual(
    [approve.effect, approve.via, approve.needs, approve.refusal?.code],
    ['approve', 'forwards', [{ group: 'approvers', k: '2', have: '0' }], 'POLICY_APPROVAL'],
  )
  const small = approve.tried.find(({ rule }) => rule === 'small')
  assert.deepEqual([small?.fits, small?.why?.startsWith('action: ')], [false, true])
  const denied = await evaluate('USDT_ETH')
  assert.deepEqual(
    [denied.effect, denied.via, denied.refusal?.code],
    ['deny', null, 'POLICY_DENIED'],
  )
  assert.match(denied.tried.find(({ rule }) => rule === 'forwards')?.why ?? '', /^assets: /)
  assert.equal(await rules(), before)
})

test('a simulation judges past forwards as forwards, over the API and by command', async () => {
  const { data } = (await call<{ data: Transfer[] }>(shop, 'GET', `${PATH}/${oldRule}/history`))
    .body
  const past = data.map(({ id }) => id).sort()
  assert.ok(past.length >= 2)
  const { document } = JSON.parse(readFileSync(join(platform.home, 'policy.json'), 'utf8')) as {
    document: PolicyDocument
  }
  const forwards = document.rules.find(({ id }) => id === 'forwards') as object
  const withForwards = (...rules: object[]) => ({
    ...document,
    number: 2,
    previous: documentHash(document),
    rules: [...document.rules.filter(({ id }) => id !== 'forwards'), ...rules],
  })
  interface Simulated {
    newly_denied: string[]
    newly_allowed: string[]
    unused_rules: string[]
    stopped: string[]
  }
  const simulate = async (as: User, next: object): Promise<Simulated> => {
    const path = '/dac/v1/policy/simulate'
    const { status, body } = await call<Simulated>(as, 'POST', path, { document: next })
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const none = withForwards()
  const denied = await simulate(shop, none)
  assert.deepEqual([denied.newly_denied.toSorted(), denied.newly_allowed], [past, []])
  assert.equal(denied.stopped.length, 1)
  assert.match(denied.stopped[0] ?? '', new RegExp(`^The standing rule ${oldRule} would stop: `))
  const free = { ...forwards, approvals: undefined, initiator: undefined }
  const allowed = await simulate(shop, withForwards(free))
  assert.deepEqual(
    [allowed.newly_denied, allowed.newly_allowed.toSorted(), allowed.stopped],
    [[], past, []],
  )
  assert.ok(!allowed.unused_rules.includes('forwards'))
  const small = await simulate(shop, withForwards({ ...free, amount: { max: { ETH: '1.5' } } }))
  assert.ok(small.newly_denied.length > 0 && small.newly_allowed.length > 0)
  const day = { name: 'day', hours: 24, per: 'workspace', max: { ETH: '2.5' }, share: '1' }
  const limited = await simulate(shop, withForwards({ ...free, windows: [day] }))
  assert.ok(limited.newly_allowed.includes(data.at(-1)!.id), 'the first forward fits')
  assert.ok(limited.newly_denied.length > 0, 'the window is full after it')
  const others = await simulate(user, none)
  assert.deepEqual([others.newly_denied, others.stopped], [[], []])

  const file = join(platform.home, 'without-forwards.json')
  writeFileSync(file, JSON.stringify(none))
  const typed = await result('policy', 'simulate', file, '--workspace', 'approved')
  assert.deepEqual((typed['newly_denied'] as unknown as string[]).toSorted(), past)
  assert.deepEqual(typed['stopped'], denied.stopped)
})

test('a new rule that a person rejects never forwards, and one that the policy denies is not created', async () => {
  await fundedWallet(platform, shop, 'TRX', '100')
  const rule = (await makeRule('TRX', 'TD3AWYqUF6hcGN5N9Ggg9yGpemnZ6vUYfH')).body
  assert.equal(rule.status, 'awaiting_approval', JSON.stringify(rule))
  assert.deepEqual(rule.needs, [{ group: 'approvers', k: '2', have: '0' }])
  await result('approve', rule.id, '--reject', ...by('carol'))
  const ended = await reaches(rule.id, 'deleted')
  assert.match(ended.reason ?? '', /^APPROVAL_REJECTED: carol rejected the rule$/)
  assert.equal((await eventsOf(rule.id)).at(-1), 'approval.closed rejected')
  const again = await platform.cli('approve', rule.id, ...by('bob'))
  assert.match(again.stderr, /the rule does not wait for approvals: it is rejected/)

  await fundedWallet(platform, shop, 'USDT_ETH', '50')
  const denied = await makeRule('USDT_ETH', SINK)
  assert.deepEqual([denied.status, denied.body.code], [403, 'POLICY_DENIED'])
  const { data } = (await call<{ data: Rule[] }>(shop, 'GET', `${PATH}?asset=USDT_ETH`)).body
  assert.deepEqual(data, [])
})

testEmittedEvents(
  () => platform.database,
  ['approval.requested', 'approval.updated', 'approval.closed'],
)
