// The page in a real browser with a virtual authenticator: a person creates a passkey, signs a
// document, and approves and rejects a transfer.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core'
import { carriedApproval, compile, readSigned, verifyDecisions } from '@custody/policy'
import { PAGE_WAIT_MS, startBrowser } from '../../../testing/browser.ts'
import {
  approvalOf,
  documentOf,
  place,
  startPage,
  TestPlatform,
  type TestPage,
} from '../testing/fixture.ts'
import { ApproverError } from '../src/errors.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const DESK = { width: 1440, height: 900 }
const PHONE = { width: 390, height: 844 }
/** Folder for screenshots; if it is not set, none are made. */
const PICTURES = process.env['CUSTODY_SCREENSHOTS']

const platform = new TestPlatform(await approvalOf(documentOf()))
let browser: Browser
let context: BrowserContext
let page: Page
let session: CDPSession
let approver: TestPage
let authenticatorId = ''
const problems: string[] = []

before(async () => {
  browser = await startBrowser()
  approver = await startPage(platform)
  context = await browser.newContext({
    viewport: DESK,
    colorScheme: 'light',
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  context.setDefaultTimeout(PAGE_WAIT_MS)
  await context.addInitScript({
    content: `addEventListener('securitypolicyviolation', (event) => console.error('policy ' + event.violatedDirective + ' ' + event.blockedURI))`,
  })
  // Stores what the page displays when it requests the passkey.
  await context.addInitScript({
    content: `{
      const get = navigator.credentials.get.bind(navigator.credentials)
      navigator.credentials.get = (options) => {
        globalThis.displayed = document.body.innerText
        return get(options)
      }
    }`,
  })
  page = await context.newPage()
  page.on('pageerror', (error) => problems.push(error.message))
  page.on('console', (message) => {
    if (message.text().startsWith('policy ')) problems.push(message.text())
  })
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url())
    if (protocol !== 'blob:' && origin !== approver.origin) problems.push(request.url())
  })
  session = await context.newCDPSession(page)
  await session.send('WebAuthn.enable')
  ;({ authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  }))
})
after(async () => {
  await browser?.close()
  approver?.close()
})

/** Asserts that nothing is too wide at both widths, and makes screenshots if they are enabled. */
async function look(name: string): Promise<void> {
  for (const [size, suffix] of [
    [PHONE, 'phone'],
    [DESK, 'desk'],
  ] as const) {
    await page.setViewportSize(size)
    const wide = await page.evaluate<number>('document.documentElement.scrollWidth')
    assert.ok(wide <= size.width, `${name}: ${wide} pixels wide at ${size.width}`)
    if (PICTURES === undefined) continue
    mkdirSync(PICTURES, { recursive: true })
    await page.screenshot({
      path: join(PICTURES, `approver-${name}-${suffix}.png`),
      fullPage: true,
    })
  }
}

const button = (name: string) => page.getByRole('button', { name, exact: true })
const link = (name: string) => page.getByRole('link', { name, exact: true })

let key: Record<string, unknown> = {}

test('a person creates a passkey and copies its entry for the policy document', async () => {
  await page.goto(approver.origin)
  await link('My passkey').click()
  await button('Create a passkey').click()
  await page.getByText('The passkey was created').waitFor()
  await look('passkey')
  await button('Copy').click()
  await page.getByText('Copied', { exact: true }).waitFor()
  key = JSON.parse(await page.evaluate<string>('navigator.clipboard.readText()'))
  assert.deepEqual(
    [key['kind'], key['alg'], key['rp_id'], key['origins'], key['device_bound']],
    ['passkey', 'ES256', 'localhost', [approver.origin], true],
  )
})

test('the person signs a document, and saves it with a proof that verifies', async () => {
  const document = documentOf(key)
  const path = join(approver.dir, 'file.policy')
  writeFileSync(path, JSON.stringify({ document, possessions: [] }))
  await link('Sign a document').click()
  await page.getByLabel('Policy file').setInputFiles(path)
  await page.getByRole('heading', { name: 'Policy document 1 of acme, mainnet' }).waitFor()
  await page.getByText(/^Passkey passkey-1, ES256\. Proof: missing/).waitFor()
  await look('document')
  await button('Sign with my passkey').click()
  await page.getByText('Passkey passkey-1, ES256. The proof is valid.').waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    button('Save the file').click(),
  ])
  const saved = JSON.parse(readFileSync(await download.path(), 'utf8')) as {
    possessions: unknown[]
  }
  assert.equal(saved.possessions.length, 1)
  assert.equal(readSigned(JSON.stringify(saved.possessions[0])).statement.by, 'alice')
  platform.approval = await approvalOf(document)
  platform.inForce = document
})

for (const decision of ['Approve', 'Reject'] as const)
  test(`the person selects "${decision}", and the decision verifies as at a signer node`, async () => {
    const document = documentOf(key)
    platform.approval = await approvalOf(document)
    platform.given.length = 0
    await link('Approvals').click()
    await page.getByText(/^Transfer 0\.6 ETH from sub-account "main" to 0xd8dA6BF/).waitFor()
    if (decision === 'Approve') await look('list')
    await page.getByRole('link', { name: /^Review/ }).click()
    await page.getByText('The facts match the signed request of the caller.').waitFor()
    assert.equal(
      await page.locator('.facts .grouped').first().innerText(),
      '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'.match(/.{1,4}/g)?.join(''),
    )
    if (decision === 'Approve') await look('detail')
    await button(decision).click()
    await page
      .getByText(decision === 'Approve' ? 'Your decision is stored' : 'The transfer is rejected')
      .waitFor()
    await page
      .getByText(
        `alice ${decision === 'Approve' ? 'approves' : 'rejects'} it (signature verified).`,
      )
      .waitFor()
    if (decision === 'Reject') await look('rejected')
    // An approval can be renewed and revoked; a rejection is final.
    assert.deepEqual(
      [await button('Approve again').count(), await button('Reject').count()],
      decision === 'Approve' ? [1, 1] : [0, 0],
    )
    const displayed = await page.evaluate<string>('globalThis.displayed')
    assert.match(displayed, new RegExp(`alice ${decision.toLowerCase()}s the following`))
    assert.equal(await page.getByText('Your passkey signs this:').count(), 0)
    const [given] = platform.given
    const carried = carriedApproval.parse({ id: platform.approval.id, ...given })
    const policy = compile(document, place.registry)
    const { statement } = platform.approval
    const facts = statement.facts as { amount: string; fee_max: string; to: string }
    const act = {
      ...(statement.facts as object),
      id: statement.id,
      subject: statement.subject,
      action: 'transfer',
      workspace: 'acme',
      amount: BigInt(facts.amount),
      to: { address: facts.to, tag: null, own: null },
      fee: { max: 0n, limit: BigInt(facts.fee_max) },
    }
    const { approvals, rejections, ignored } = verifyDecisions(policy, act as never, [carried], {
      now_s: Math.floor(Date.now() / 1000),
      suspended: new Set(),
    })
    assert.deepEqual(
      [approvals.length, rejections.length, ignored],
      decision === 'Approve' ? [1, 0, []] : [0, 1, []],
    )
  })

test('displays why nothing was signed: a failed verification, a closed transfer, no platform', async () => {
  platform.approval = await approvalOf(documentOf(key))
  platform.given.length = 0
  await link('Approvals').click()
  await page.getByRole('link', { name: /^Review/ }).click()
  await button('Approve').waitFor()
  await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
  await button('Approve').click()
  await page.getByRole('alert').filter({ hasText: 'NOT_USED' }).waitFor()
  await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
  platform.approval = { ...platform.approval, state: 'approved' }
  await button('Approve').click()
  await page.getByRole('alert').filter({ hasText: 'APPROVAL_CLOSED' }).waitFor()
  await page.getByText('State: approved').waitFor()
  assert.equal(await button('Approve').count(), 0)
  platform.failure = new ApproverError('UNREACHABLE', 'the platform did not respond')
  await link('All approvals').click()
  await page.getByRole('alert').filter({ hasText: 'UNREACHABLE' }).waitFor()
  assert.deepEqual(platform.given, [])
})

test('a transfer that changed after it was displayed is not signed, and is displayed again', async () => {
  const document = documentOf(key)
  platform.approval = await approvalOf(document)
  await page.goto(`${approver.origin}/#approvals`)
  await page.reload()
  await page.getByRole('link', { name: /^Review/ }).click()
  await button('Approve').waitFor()
  await page.evaluate('globalThis.displayed = null')
  platform.approval = await approvalOf(document, { body: { amount: '0.7' } })
  await button('Approve').click()
  await page.getByRole('alert').filter({ hasText: 'CHANGED' }).waitFor()
  await page.getByText(/^Transfer 0\.7 ETH from/).waitFor()
  assert.equal(await page.evaluate('globalThis.displayed'), null)
  assert.deepEqual(platform.given, [])
  await link('All approvals').click()
  await page.getByRole('heading', { name: 'Approvals' }).waitFor()
})

test('a transfer whose facts differ from the registry has no buttons, also in the dark', async () => {
  const approval = await approvalOf(documentOf(key))
  const facts = { ...(approval.facts as object), decimals: 17 }
  platform.approval = { ...approval, facts, statement: { ...approval.statement, facts } }
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.goto(`${approver.origin}/#approvals/${approval.id}`)
  await page.getByText(/decimals is 17 there and 18 here/).waitFor()
  assert.equal(await button('Approve').count(), 0)
  assert.equal(
    await page.evaluate('getComputedStyle(document.body).backgroundColor'),
    'rgb(16, 20, 24)',
  )
  await look('refused-dark')
})

test('works by keyboard, and loads nothing from elsewhere', async () => {
  platform.approval = await approvalOf(documentOf(key))
  await page.goto(`${approver.origin}/#approvals`)
  await page.reload()
  await page.getByRole('link', { name: /^Review/ }).focus()
  await page.keyboard.press('Enter')
  await button('Approve').focus()
  await page.keyboard.press('Enter')
  await page.getByText('Your decision is stored').waitFor()
  assert.deepEqual(problems, [])
})

test('the list and the count in the title follow the platform, and what is reviewed stays', async () => {
  const first = await approvalOf(documentOf(key))
  platform.approval = first
  await page.clock.install()
  await page.goto(`${approver.origin}/#approvals`)
  await page.reload()
  await page.getByText(/^Transfer 0\.6 ETH from/).waitFor()
  await waitFor('the count', async () => (await page.title()).startsWith('(1) Approvals'))
  platform.approval = await approvalOf(documentOf(key), { body: { amount: '0.7' } })
  await page.clock.runFor(10_000)
  await page.getByText(/^Transfer 0\.7 ETH from/).waitFor()
  await page.getByRole('link', { name: /^Review/ }).click()
  await button('Approve').focus()
  platform.hasNone = true
  await page.clock.runFor(10_000)
  await waitFor('the count to end', async () => (await page.title()).startsWith('Approvals'))
  // The details that the person compares, and the focus, are not touched.
  await page.getByText(/^Transfer 0\.7 ETH from/).waitFor()
  assert.equal(await page.evaluate('document.activeElement.textContent'), 'Approve')
  platform.hasNone = false
  // After a failure the page waits longer, and the list stays.
  await link('All approvals').click()
  await page.getByText(/^Transfer 0\.7 ETH from/).waitFor()
  platform.failure = new ApproverError('UNREACHABLE', 'the platform did not respond')
  await page.clock.runFor(10_000)
  await page.getByRole('alert').filter({ hasText: 'UNREACHABLE' }).waitFor()
  await page.getByText(/^Transfer 0\.7 ETH from/).waitFor()
  await page.clock.runFor(20_000)
  await page.getByRole('alert').waitFor({ state: 'detached' })
  await page.clock.resume()
})
