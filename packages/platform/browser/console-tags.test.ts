// Tests of destination tags in the control panel: tags that a person enters in Send, in a batch
// file and in a rule arrive on the local XRP Ledger.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { Client, Wallet } from 'xrpl'
import { startBrowser } from '../../../testing/browser.ts'
import { createApiUserEverywhere } from '../src/server/operator/enrol.ts'
import { readPublicKey } from '../src/server/operator/cli/typed.ts'
import { accessible, look, picture, Visitor } from '../testing/console-browser.ts'
import { takeLink } from '../testing/console-fixture.ts'
import { rpc, TestPlatform } from '../testing/harness.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const platform = new TestPlatform()
const EXCHANGE = Wallet.generate()
const SHOP = Wallet.generate()
const RAW = Wallet.generate()
let browser: Browser
let origin = ''
let page: Page
let desk: BrowserContext
let visitor: Visitor

before(async () => {
  browser = await startBrowser()
  await platform.start()
  origin = `http://localhost:${new URL(platform.base).port}`
  visitor = new Visitor(browser, origin)
  ;({ page, context: desk } = await visitor.open())
  for (const { address } of [EXCHANGE, SHOP]) await fund(address, '20')
  // The account of the exchange is set to refuse payments without a tag.
  const { devnet } = JSON.parse(readFileSync(join(platform.home, 'ports.json'), 'utf8')) as {
    devnet: number
  }
  const client = new Client(`ws://127.0.0.1:${devnet}/xrp`)
  await client.connect()
  await client.submitAndWait(
    { TransactionType: 'AccountSet', Account: EXCHANGE.address, SetFlag: 1 },
    { wallet: EXCHANGE },
  )
  await client.disconnect()
})
after(async () => {
  await browser?.close()
  await platform.remove()
})

/**
 * Whether a previous test failed. Each test continues from the state that the previous one left, so
 * the others are then skipped.
 */
let isBroken = false
function step(name: string, work: (t: TestContext) => Promise<void>): void {
  test(name, async (t) => {
    if (isBroken) return t.skip('the step before it failed')
    isBroken = true
    await work(t)
    isBroken = false
  })
}

const at = (path: string) => `${origin}/console/w/acme/main${path}`
const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor()
const button = (name: string) => page.getByRole('button', { name, exact: true })
const fund = (address: string, amount: string) =>
  platform.operator('devnet', { command: 'fund', asset: 'XRP', address, amount, tag: null })

interface Paid {
  memo: string | null
  hash: string | null
  status: string
  failure_reason: string | null
}
/**
 * Returns the tags of the wallet's payments to an account, as recorded on the ledger, by the memo
 * of the transfer.
 */
async function tagsAt(address: string, count: number): Promise<Record<string, number | null>> {
  const rows = await waitFor(`${count} payments to ${address}`, async () => {
    const matches = await platform.database.query<Paid>(
      `select memo, hash, status, failure_reason from transactions where kind = 'WITHDRAWAL'
        and destination_id = $1`,
      [address],
    )
    for (const { status, failure_reason: reason } of matches)
      assert.notEqual(status, 'failed', String(reason))
    return matches.length >= count && matches.every(({ status }) => status === 'confirmed')
      ? matches
      : null
  })
  assert.equal(rows.length, count)
  const paid = await Promise.all(
    rows.map(async ({ memo, hash }) => {
      const transaction = (await rpc(platform, 'XRP', 'tx', [{ transaction: hash }])) as {
        Destination: string
        DestinationTag?: number
      }
      assert.equal(transaction.Destination, address)
      return [memo ?? '', transaction.DestinationTag ?? null] as const
    }),
  )
  return Object.fromEntries(paid)
}

async function confirmReview(address: string): Promise<void> {
  await heading('Review')
  await page.getByText('Send exactly').click()
  await page.getByLabel(/last 6 characters/).fill(address.slice(-6))
  await button('Sign and send').click()
  await heading(/^Withdrawal of/)
}

step('somebody joins, enrols a key of the browser, and has an XRP wallet with coins', async () => {
  const { link } = (await platform.operator('console invite', {
    workspace: 'acme',
    role: 'owner',
  })) as { link: string }
  const { browser: signedIn } = await takeLink({ base: platform.base }, new URL(link).hash.slice(1))
  const [name, value] = signedIn.cookie.split('=') as [string, string]
  await desk.addCookies([{ name, value, url: origin }])
  await page.goto(at('/browser-key'))
  await page.getByLabel('Name').fill('desk')
  await button('Create a key in this browser').click()
  const command = await page.getByRole('region', { name: /^Command/ }).innerText()
  const publicKeyPem = readPublicKey(
    /--public-key (\S+)/.exec(command)?.[1] ?? assert.fail(command),
  )
  await createApiUserEverywhere(platform.home, {
    workspace: 'acme',
    subAccount: 'main',
    role: 'full',
    publicKeyPem,
  })
  await page.getByText('Enrolled: this browser signs').waitFor()
  await page.goto(at('/wallets?new='))
  await page.getByLabel('Asset', { exact: true }).selectOption('XRP')
  await button('Create').click()
  await heading('XRP')
  const { address } =
    (await platform.database.one<{ address: string }>(
      `select address from chain_addresses where network = 'XRP'`,
    )) ?? assert.fail()
  await fund(address, '200')
  await page.locator('.figures').getByText('199 XRP').first().waitFor()
  await button('New address').first().click()
  await page.getByLabel('Label').fill('customer 1')
  await button('Make the address').click()
  await page.keyboard.press('Escape')
  await page
    .getByRole('region', { name: 'Addresses' })
    .getByRole('columnheader', { name: 'Tag' })
    .waitFor()
})

step('Send wants a tag or the statement that there is none, and the tag arrives', async () => {
  await page.goto(at('/send?asset=XRP'))
  await page.getByLabel('Amount').fill('5')
  await page.getByLabel('Destination address').fill(SHOP.address)
  await page.getByText('A valid XRP address').waitFor()
  await page.getByLabel('Memo for your records').fill('123456')
  await page.getByText(/Enter them as destination tag/).waitFor()
  assert.equal(
    await button('Review').isDisabled(),
    true,
    'neither a tag nor the statement that there is none',
  )
  await page.getByLabel('Memo for your records').fill('first')
  assert.equal(
    await button('Review').isDisabled(),
    true,
    'neither a tag nor the statement that there is none',
  )
  await page.getByText('The payee has no destination tag').click()
  await page.locator('button:enabled', { hasText: 'Review' }).waitFor()
  await page.getByLabel('Destination address').fill(EXCHANGE.address)
  await page.getByText('This account refuses payments without a destination tag.').waitFor()
  assert.equal(await page.getByText('The payee has no destination tag').count(), 0)
  assert.equal(await button('Review').isDisabled(), true)
  await page.getByRole('textbox', { name: 'Destination tag' }).fill('4294967296')
  await page.getByText('The tag must be a whole number').waitFor()
  await page.getByRole('textbox', { name: 'Destination tag' }).fill('123456')
  await page.getByText('A valid XRP address').waitFor()
  await page.getByText('Network fee about').waitFor()
  await look(page, 'send with a tag', { picture: 'send-tag', isOnPhone: true })
  await page.emulateMedia({ colorScheme: 'dark' })
  await picture(page, 'send-tag-dark')
  await accessible(page, 'send with a tag in the dark')
  await page.emulateMedia({ colorScheme: 'light' })
  await button('Review').click()
  await heading('Review')
  await page.locator('.lines').getByText('123456', { exact: true }).waitFor()
  await look(page, 'review with a tag', { picture: 'review-tag' })
  await confirmReview(EXCHANGE.address)
  assert.deepEqual(await tagsAt(EXCHANGE.address, 1), { first: 123456 })

  await page.goto(at('/send?asset=XRP'))
  await page.getByLabel('Amount').fill('3')
  await page.getByLabel('Destination address').fill(SHOP.address)
  await page.getByLabel('Memo for your records').fill('none')
  await page.getByText('The payee has no destination tag').click()
  await look(page, 'send without a tag', { picture: 'send-no-tag', isOnPhone: true })
  await button('Review').click()
  await page.locator('.lines').getByText('The payee has no destination tag').waitFor()
  await confirmReview(SHOP.address)
  assert.deepEqual(await tagsAt(SHOP.address, 1), { none: null })
})

step('the review states what the policy would decide about the transfer', async () => {
  const pattern = '**/dac/v1/policy/evaluate'
  const decision = { via: null, needs: [], tried: [], windows: [], refusal: null, by: ['node 1'] }
  const policy = { number: 1, hash: 'ab'.repeat(32) }
  let asked: { uri?: string; api_key?: string; body?: Record<string, unknown> } = {}
  const review = async (says: object, shown: string | RegExp) => {
    await page.route(pattern, async (route) => {
      asked = route.request().postDataJSON() as typeof asked
      await route.fulfill({ json: { ...decision, policy, ...says } })
    })
    await page.goto(at('/send?asset=XRP'))
    await page.getByLabel('Amount').fill('4')
    await page.getByLabel('Destination address').fill(SHOP.address)
    await page.getByText('The payee has no destination tag').click()
    await button('Review').click()
    await page.getByText(shown).waitFor()
    await page.unroute(pattern)
  }
  const needs = [{ group: 'treasury', k: 2, have: 0 }]
  await review(
    { effect: 'approve', via: 'large', needs },
    'By the rule “large” of the policy, the transfer waits for the approvals of 2 of treasury.',
  )
  assert.deepEqual(
    [asked.uri, asked.body?.['amount'], asked.body?.['destination_address']],
    ['/dac/v1/transaction', 4, SHOP.address],
  )
  assert.match(String(asked.api_key), /^[0-9a-f-]{36}$/)
  await look(page, 'a review with a policy', { picture: 'review-policy', isOnPhone: true })
  await review({ effect: 'allow', via: 'usual' }, 'The policy allows it by the rule “usual”.')
  const tried = [{ rule: 'usual', fits: false, why: 'amount: 4 XRP is above 1' }]
  await review({ effect: 'deny', tried }, 'usual: amount: 4 XRP is above 1')
  const refusal = { code: 'POLICY_WINDOW', message: 'full', frees_at: '2030-01-01T00:00:00.000Z' }
  await review({ effect: 'deny', refusal }, /A window of the policy is full/)
})

step('the tag of a batch line arrives; lines without one are confirmed apart', async () => {
  await page.goto(at('/batch'))
  const choose = (text: string) =>
    page
      .getByLabel('CSV file')
      .setInputFiles({ name: 'tags.csv', mimeType: 'text/csv', buffer: Buffer.from(text) })
  await choose(`asset,amount,destination_address\nXRP,1.1,${SHOP.address}\n`)
  await page.getByText('the file has no column address_tag').waitFor()
  await choose(`asset,amount,destination_address,address_tag\nXRP,1.1,${EXCHANGE.address},\n`)
  await page.getByText('address_tag: this account refuses payments without one').waitFor()
  await choose(
    `asset,amount,destination_address,address_tag,memo\nXRP,1.1,${SHOP.address},,123456\n`,
  )
  await page.getByText('memo: digits there never reach the network').waitFor()
  await choose(`asset,amount,destination_address,address_tag,memo
XRP,1.1,${RAW.address},3042817,with
XRP,1.2,${RAW.address},0,zero
XRP,1.3,${RAW.address},,without
`)
  await page.getByText('I have looked at the lines').click()
  assert.equal(await button('Sign and send').isDisabled(), true)
  await look(page, 'a batch with a line without tag', {
    picture: 'batch-tag',
    isWhole: true,
    isOnPhone: true,
  })
  await page.getByText('One line has no destination tag or memo').click()
  await button('Sign and send').click()
  await page.getByText('All 3 lines are sent.').waitFor()
  assert.deepEqual(await tagsAt(RAW.address, 3), { with: 3042817, zero: 0, without: null })
})

step('a batch stops after the current line when the page is left, as it says before', async () => {
  const target = Wallet.generate().address
  const lines = ['left', 'unsent'].map((memo, at) => `XRP,1.${at + 6},${target},${at},${memo}`)
  const buffer = Buffer.from(
    `asset,amount,destination_address,address_tag,memo\n${lines.join('\n')}\n`,
  )
  const choose = async () => {
    await page.goto(at('/batch'))
    await page
      .getByLabel('CSV file')
      .setInputFiles({ name: 'left.csv', mimeType: 'text/csv', buffer })
  }
  await choose()
  await page.getByText('If you leave it, sending stops after the current line').waitFor()
  let release = (): void => undefined
  const held = new Promise<void>((resolve) => (release = resolve))
  const posted: string[] = []
  const path = '**/dac/v1/transaction'
  await page.route(path, async (route) => {
    posted.push(route.request().postData() ?? '')
    await held
    await route.continue()
  })
  await page.getByText('I have looked at the lines').click()
  await button('Sign and send').click()
  await waitFor('the first line is sent', async () => posted.length === 1)
  await page.getByRole('link', { name: 'Overview', exact: true }).click()
  await heading('Overview')
  release()
  assert.deepEqual(await tagsAt(target, 1), { left: 0 })
  await choose()
  await page.getByText(/what is left: 1$/).click()
  assert.equal(posted.length, 1)
  await button('Go on').click()
  await page.getByText('All 2 lines are sent.').waitFor()
  await page.unroute(path)
  assert.deepEqual(await tagsAt(target, 2), { left: 0, unsent: 1 })
})

step(
  'a corrected, reordered or longer batch file pays only what is new; what looks like an earlier payment is left out',
  async () => {
    const target = Wallet.generate().address
    const choose = async (...lines: string[]) => {
      await page.goto(at('/batch'))
      const text = `asset,amount,destination_address,address_tag,memo,reference\n${lines.join('\n')}\n`
      await page
        .getByLabel('CSV file')
        .setInputFiles({ name: 'march.csv', mimeType: 'text/csv', buffer: Buffer.from(text) })
    }
    const send = async (count: number) => {
      await page
        .getByText(new RegExp(`I have looked at the lines, and send .* ${count}\\b`))
        .click()
      await button('Sign and send').or(button('Go on')).click()
    }
    const [one, two, three] = [
      `XRP,1.5,${target},1,one,`,
      `XRP,1.5,${target},2,two,`,
      `XRP,2.5,${target},3,three,inv-3`,
    ] as const
    await choose(one, two, three)
    await send(3)
    await page.getByText('All 3 lines are sent.').waitFor()
    assert.deepEqual(await tagsAt(target, 3), { one: 1, two: 2, three: 3 })

    await choose(three, two.replace('two', 'the second'), one)
    await page.getByText('All 3 lines are sent.').waitFor()
    await choose(one, two, three, `XRP,3.5,${target},4,four,`)
    await send(1)
    await page.getByText('All 4 lines are sent.').waitFor()
    await tagsAt(target, 4)

    // This line has the same amount with another tag, and a reference that no paid line had.
    await choose(`XRP,1.5,${target},5,fifth,`, `${one}inv-1`, three)
    await page.getByText('2 lines are left out').waitFor()
    await look(page, 'a batch with lines like earlier payments', {
      picture: 'batch-earlier',
      isWhole: true,
      isOnPhone: true,
    })
    assert.equal(await button('Go on').isDisabled(), true)
    await page.getByText('Another payment: include it').first().click()
    await send(1)
    await page.getByText('2 sent, 1 left out').waitFor()
    assert.deepEqual(await tagsAt(target, 5), { one: 1, two: 2, three: 3, four: 4, fifth: 5 })

    await choose(`XRP,2.5,${target},33,three,inv-3`)
    await page.getByText('reference: names another payment that was ordered before').waitFor()
    await page
      .getByRole('region', { name: 'Lines' })
      .getByRole('link', { name: 'Transfer' })
      .waitFor()
    assert.equal(await button('Sign and send').isDisabled(), true)
  },
)

step(
  'a line whose transfer failed is paid again where the person says so, and only once',
  async () => {
    const target = Wallet.generate().address
    const line = `asset,amount,destination_address,address_tag,memo,reference\nXRP,0.5,${target},9,retry,inv-9\n`
    const choose = async () => {
      await page.goto(at('/batch'))
      await page
        .getByLabel('CSV file')
        .setInputFiles({ name: 'retry.csv', mimeType: 'text/csv', buffer: Buffer.from(line) })
    }
    const fault = (mode: string) =>
      platform.operator('devnet', { command: 'fault', network: 'XRP', mode })
    const statuses = async () =>
      (
        await platform.database.query<{ status: string }>(
          'select status from transactions where destination_id = $1 order by created_at',
          [target],
        )
      ).map(({ status }) => status)
    // While the chain is unreachable, an amount that is too small to create an account is refused
    // only after the transfer was requested.
    await choose()
    await fault('down')
    await page.getByText('I have looked at the lines').click()
    await button('Sign and send').click()
    await page.getByText('The line is sent.').waitFor()
    await fault('heal')
    await waitFor('the failure', async () => (await statuses())[0] === 'failed')
    await fund(target, '20')
    await choose()
    await page.getByText('One line is left out').waitFor()
    await page.getByText('Pay it again').click()
    await page.getByText('of which 1 look like earlier payments').click()
    await button('Sign and send').click()
    await page.getByText('The line is sent.').waitFor()
    await waitFor(
      'the second attempt',
      async () => (await statuses()).join() === 'failed,confirmed',
    )
    await choose()
    await page.getByText('The line is sent.').waitFor()
    const sequences = await platform.database.query<{ sequence_id: string }>(
      'select sequence_id from transactions where destination_id = $1 order by created_at',
      [target],
    )
    assert.deepEqual(
      sequences.map(({ sequence_id: id }) => id),
      ['inv-9', 'inv-9#2'],
    )
  },
)

step('a rule forwards with the tag that was typed', async () => {
  const dialog = page.getByRole('dialog')
  await page.goto(at('/forwarding'))
  await button('New rule').first().click()
  await dialog.getByLabel('From', { exact: true }).fill('2')
  await dialog.getByLabel('Maximum in 24 hours').fill('50')
  await dialog.getByLabel('Destination address').fill(SHOP.address)
  assert.equal(await button('Sign the rule').isDisabled(), true)
  await dialog.getByText('The payee has no destination tag').click()
  await page.locator('button:enabled', { hasText: 'Sign the rule' }).waitFor()
  await dialog.getByRole('textbox', { name: 'Destination tag' }).fill('77')
  await accessible(page, 'a rule with a tag')
  await picture(page, 'rule-tag')
  await page.locator('button:enabled', { hasText: 'Sign the rule' }).click()
  await page.waitForURL(/forwarding\/\w/)
  await page.getByText('Active', { exact: true }).first().waitFor()
  const rules = await platform.database.query<{ address_tag: string | null }>(
    'select address_tag from forward_rules',
    [],
  )
  assert.deepEqual(
    rules.map(({ address_tag: tag }) => tag),
    ['77'],
  )
  assert.deepEqual(visitor.problems, [])
})
