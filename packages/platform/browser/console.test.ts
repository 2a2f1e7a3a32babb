// Tests of the control panel in a real browser, on a platform with its nodes and local chains.
// Every main path is covered once.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test, type TestContext } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { signRequest } from '@custody/request-auth'
import { startBrowser } from '../../../testing/browser.ts'
import { readPublicKey } from '../src/server/operator/cli/typed.ts'
import { createApiUserEverywhere } from '../src/server/operator/enrol.ts'
import { accessible, look, picture, Visitor } from '../testing/console-browser.ts'
import { codeOf } from '../testing/console-fixture.ts'
import { PRIVATE_KEY, PUBLIC_KEY, TestPlatform } from '../testing/harness.ts'
import { REMEMBER_MS } from '../src/console-api/people/sessions.ts'
import { waitFor } from '../../../testing/wait-for.ts'

const FIRST_PAINT_MAX_MS = 1000
const PASSWORD = 'correct horse battery staple'
const EMAIL = 'mara@acme.example'
const DESTINATION = '0x52908400098527886E0F7030069857D2E4169EE7'

const platform = new TestPlatform()
let browser: Browser
let origin = ''
let desk: BrowserContext
let page: Page
let visitor: Visitor
let recovery: string[] = []
let secret = ''

/** Ids of the deliveries that the webhook receiver got. */
const taken: string[] = []
const receiver = createServer((request, response) => {
  taken.push(String(request.headers['webhook-id']))
  request.resume()
  response.writeHead(204).end()
})

before(async () => {
  // The browser is started first, so that it is closed even if the rest of the setup fails.
  browser = await startBrowser()
  await platform.start()
  origin = `http://localhost:${new URL(platform.base).port}`
  visitor = new Visitor(browser, origin)
  ;({ page, context: desk } = await visitor.open())
})
after(async () => {
  receiver.closeAllConnections()
  receiver.close()
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

const at = (path: string, sub = 'main') => `${origin}/console/w/acme/${sub}${path}`
const heading = (name: string | RegExp, of = page) =>
  of.getByRole('heading', { level: 1, name }).waitFor()
const button = (name: string | RegExp, of = page) =>
  of.getByRole('button', { name, exact: typeof name === 'string' })
const totp = () => codeOf(secret, Date.now())
/**
 * Returns a valid code. A code works once, and the next one would appear only after half a minute,
 * so the person's last used step is cleared.
 */
const freshCode = async () => {
  await platform.database.query('update people set totp_step = totp_step - 2 where email = $1', [
    EMAIL,
  ])
  return totp()
}

step('the first owner joins by password and authenticator app, and is in', async (t) => {
  const { link } = (await platform.operator('console invite', {
    workspace: 'acme',
    role: 'owner',
  })) as { link: string }
  await page.goto(`${origin}/console/join${new URL(link).hash}`)
  await heading('Join acme')
  await button(/Use a password/).click()
  await page.getByLabel('Your name').fill('Mara Lindqvist')
  await page.getByLabel('Email').fill(EMAIL)
  await page.getByLabel('Password').fill('short')
  await button('Continue').click()
  await page.locator('input[type=password]:invalid').waitFor()
  await page.getByLabel('Password').fill(PASSWORD)
  await look(page, 'join')
  await button('Continue').click()
  secret = await page.locator('.id .code').innerText()
  await page.getByLabel('Code').fill('000000')
  await button('Confirm').click()
  await page.getByRole('alert').filter({ hasText: 'SIGN_IN_FAILED' }).waitFor()
  await look(page, 'authenticator app')
  await page.getByLabel('Code').fill(totp())
  await button('Confirm').click()
  await heading('Keep your recovery codes')
  recovery = await page.locator('.recovery code').allInnerTexts()
  assert.equal(recovery.length, 10)
  assert.equal(await button('Go on').isDisabled(), true)
  await page.getByText('I have kept them').click()
  await look(page, 'recovery codes')
  await button('Go on').click()
  await heading('Welcome to acme')
  await look(page, 'a new workspace', { picture: 'welcome' })
  await page.reload()
  await heading('Welcome to acme')
  const paint =
    await page.evaluate<number>(`new Promise((resolve) => new PerformanceObserver((list) => {
    for (const { name, startTime } of list.getEntries()) if (name === 'first-contentful-paint') resolve(startTime)
  }).observe({ type: 'paint', buffered: true }))`)
  t.diagnostic(`first contentful paint ${Math.round(paint)} ms`)
  assert.ok(paint < FIRST_PAINT_MAX_MS, `${paint} ms`)
})

step('a key is made in the browser, enrolled by the operator, and signs from then on', async () => {
  await page.getByRole('link', { name: 'Create a key in this browser' }).click()
  await heading('Browser key')
  await page.getByLabel('Name').fill('Mara’s laptop')
  await button('Create a key in this browser').click()
  await page.getByText('Waits for enrolment').waitFor()
  const command = await page.getByRole('region', { name: /^Command/ }).innerText()
  assert.match(
    command,
    /npx custody api-user create --workspace 'acme' --sub-account 'main' --role full --public-key \S+/,
  )
  const publicKeyPem = readPublicKey(
    /--public-key (\S+)/.exec(command)?.[1] ?? assert.fail(command),
  )
  const fingerprint = await page.locator('.id .code').first().innerText()
  await look(page, 'a key that waits', { picture: 'browser-key', isWhole: true })
  // Does the same as the operator's command.
  const request = /--request (\S+)/.exec(command)?.[1] ?? assert.fail(command)
  const enrolled = await createApiUserEverywhere(platform.home, {
    workspace: 'acme',
    subAccount: 'main',
    role: 'full',
    publicKeyPem,
    request,
  })
  assert.equal(enrolled.fingerprint, fingerprint)
  await page.getByText('Enrolled: this browser signs').waitFor()
  await page.goto(at(''))
  await heading('Overview')
  await page.getByText('No wallets yet').waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  await look(page, 'an empty overview')
  await page.goto(at('/wallets?new='))
  await page.getByLabel('Asset', { exact: true }).selectOption('ETH')
  await button('Create').click()
  await heading('Ether')
  const stored = await page.evaluate<{
    isExtractable: boolean
    text: string
  }>(`new Promise((resolve) => {
    const opening = indexedDB.open('custody-console', 1)
    opening.onsuccess = () => {
      const all = opening.result.transaction('keys').objectStore('keys').getAll()
      all.onsuccess = () => resolve({ isExtractable: all.result[0].private_key.extractable, text: JSON.stringify(Object.assign({}, localStorage, sessionStorage)) })
    }
  })`)
  assert.equal(stored.isExtractable, false)
  assert.doesNotMatch(stored.text, /PRIVATE/)
})

step(
  'coins that come in are seen without a reload; an address has a code, a URI, and a derivation that is verified here',
  async () => {
    const row = page.getByRole('region', { name: 'Addresses' }).getByRole('row').nth(1)
    await button('New address').first().click()
    await page.getByLabel('Label').fill('customer 1')
    await button('Make the address').click()
    const dialog = page.getByRole('dialog', { name: 'customer 1' })
    const address = await dialog.locator('.id .code').first().innerText()
    assert.match(address, /^0x[0-9a-fA-F]{40}$/)
    await dialog.getByRole('img', { name: 'Payment URI' }).waitFor()
    await dialog.getByRole('button', { name: 'Copy address' }).click()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), address)
    const { trust } = await createApiUserEverywhere(platform.home, {
      workspace: 'acme',
      subAccount: 'main',
      role: 'read-only',
      publicKeyPem: PUBLIC_KEY,
    })
    const give = (value: unknown) =>
      dialog.locator('input[type=file]').setInputFiles({
        name: 'trust.json',
        mimeType: 'application/json',
        buffer: Buffer.from(JSON.stringify(value)),
      })
    await give({ ...trust, workspace: 'other' })
    await dialog.getByText('Send nothing to this address').waitFor()
    await give(trust)
    await dialog.getByText('Derived in this browser').waitFor()
    await look(page, 'receive', { picture: 'receive' })
    await page.keyboard.press('Escape')
    await row.waitFor()
    await platform.fund('ETH', address, '20')
    await page.locator('.figures').getByText('20 ETH').first().waitFor()
    await look(page, 'a wallet', { picture: 'wallet', isWhole: true })
  },
)

step('Receive shows the newest address of a wallet that is chosen, and makes another', async () => {
  await page.goto(at('/receive'))
  await heading('Receive')
  await page.getByLabel('Asset').selectOption('ETH')
  const shown = page.locator('.lines').getByText(/^0x/).first()
  await shown.waitFor()
  const earlier = await page.locator('main').innerText()
  await button('New address').click()
  await page.getByRole('dialog').getByLabel('Label').fill('a stranger')
  await button('Make the address').click()
  await page.getByRole('heading', { name: 'a stranger' }).waitFor()
  assert.notEqual(await page.locator('main').innerText(), earlier)
  await look(page, 'receive', { picture: 'receive-page', isWhole: true, isOnPhone: true })
})

step(
  'a transfer is prepared, reviewed, signed in the browser, and its story told to the end',
  async () => {
    await page.goto(at('/send?asset=ETH'))
    await heading('Send')
    await page.getByLabel('Amount').fill('21')
    await page.getByText('More than can be sent.').waitFor()
    await page.getByLabel('Destination address').fill(DESTINATION.replace('E7', 'e7'))
    await page.getByText('No ETH address').waitFor()
    assert.equal(await button('Review').isDisabled(), true)
    await page.getByLabel('Amount').fill('1.25')
    await page.getByLabel('Destination address').fill(DESTINATION)
    await page.getByText('A valid ETH address').waitFor()
    await page.getByText('Network fee about').waitFor()
    await page.getByLabel('Memo').fill('invoice 17')
    await look(page, 'send', { picture: 'send', isOnPhone: true })
    await button('Review').click()
    await heading('Review')
    await page.getByText('The first time that anything goes to this address').waitFor()
    const confirm = button('Sign and send')
    await page.getByText('Send exactly').click()
    await page.getByLabel(/last 6 characters/).fill('ABCDEF')
    assert.equal(await confirm.isDisabled(), true)
    await page.getByLabel(/last 6 characters/).fill(DESTINATION.slice(-6))
    await look(page, 'review', { picture: 'review' })
    await confirm.click()
    await heading('Withdrawal of 1.25 ETH')
    await page.locator('.timeline').getByText('Confirmed', { exact: true }).waitFor()
    assert.match(
      await page.locator('main').innerText(),
      /Signed by Mara Lindqvist[^]+POST \/dac\/v1\/transaction/,
    )
    assert.match(await page.locator('.facts').innerText(), /Signed by nodes\s+[123] and [123]/)
    await page.getByText('transaction.confirmed').waitFor()
    await look(page, 'a transaction', { picture: 'transaction', isWhole: true, isOnPhone: true })
    const calls = await platform.database.query('select 1 from transactions where kind = $1', [
      'WITHDRAWAL',
    ])
    assert.equal(calls.length, 1)
  },
)

step('a batch says what is wrong with each line, is sent once, and never twice', async () => {
  await page.goto(at('/batch'))
  const head = 'asset,amount,destination_address,memo\n'
  const choose = (lines: string) =>
    page
      .getByLabel('CSV file')
      .setInputFiles({ name: 'march.csv', mimeType: 'text/csv', buffer: Buffer.from(head + lines) })
  await choose(`ETH,0.1,${DESTINATION},a\nETH,0.2,0x12,b\nETH,1000,${DESTINATION},c\n`)
  await page.getByText(/^destination_address: /).waitFor()
  await page.getByText('Too little').waitFor()
  await page.getByText('Nothing is sent of a file with a wrong line').waitFor()
  await look(page, 'a batch with problems', { picture: 'batch', isWhole: true })
  const good = `ETH,0.1,${DESTINATION},a\nETH,0.2,${DESTINATION},b\nETH,0.3,${DESTINATION},"c, too"\n`
  await choose(good)
  await page.getByText('I have looked at the lines').click()
  await button('Sign and send').click()
  await page.getByText('All 3 lines are sent.').waitFor()
  await page.reload()
  await choose(good)
  await page.getByText('All 3 lines are sent.').waitFor()
  const amounts = await platform.database.query<{ amount: string }>(
    `select amount::text from transactions where kind = 'WITHDRAWAL' and sequence_id like 'batch-%'`,
    [],
  )
  assert.equal(amounts.length, 3)
  // The file is in the form in which a German Excel saves it: semicolons, decimal commas,
  // Windows-1252. The page asks which value is meant if an amount is ambiguous.
  const german = Buffer.from(
    `asset;amount;destination_address;memo\r\nETH;0,125;${DESTINATION};Miete, März\r\nETH;1.234,5;${DESTINATION};\r\n`,
    'latin1',
  )
  await page
    .getByLabel('CSV file')
    .setInputFiles({ name: 'märz.csv', mimeType: 'text/csv', buffer: german })
  await page.getByText('Separator: semicolon. Text: Windows-1252.').waitFor()
  await page.getByText('“1.234,5” is read as 1234.5').waitFor()
  await page.getByText('Miete, März').waitFor()
  assert.equal(await page.getByLabel('Decimal mark').inputValue(), ',')
  const unclear = Buffer.from(`asset;amount;destination_address\r\nETH;1.234;${DESTINATION}\r\n`)
  await page
    .getByLabel('CSV file')
    .setInputFiles({ name: 'unclear.csv', mimeType: 'text/csv', buffer: unclear })
  await page.getByText('“1.234” is 1.234 or 1234: choose the decimal mark').waitFor()
  await look(page, 'a batch whose amounts can be read in two ways', {
    picture: 'batch-decimal-mark',
    isWhole: true,
  })
  await page.getByLabel('Decimal mark').selectOption('.')
  await page.getByText('I have looked at the lines').waitFor()
  assert.match(await page.getByRole('region', { name: 'Lines' }).innerText(), /1\.234/)
})

step(
  'transactions are filtered in the address, saved as a view, opened by keys, and exported',
  async () => {
    await page.goto(at('/transactions'))
    const rows = page.getByRole('region', { name: 'Transactions' }).locator('tbody tr')
    await rows.nth(4).waitFor()
    await look(page, 'transactions', { picture: 'transactions' })
    await page.keyboard.press('/')
    await page.keyboard.type('invoice 17')
    await page.keyboard.press('Enter')
    await page.waitForURL(/memo_begins=invoice\+17/)
    await rows.nth(1).waitFor({ state: 'detached' })
    assert.equal(await rows.count(), 1)
    await button('Save this view').click()
    await page.getByLabel('Name').fill('Invoice 17')
    await button('Save').click()
    await page
      .getByRole('navigation', { name: 'Saved views' })
      .getByRole('link', { name: 'Invoice 17' })
      .waitFor()
    await page
      .getByRole('navigation', { name: 'Saved views' })
      .getByRole('link', { name: 'All' })
      .click()
    await rows.nth(4).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await accessible(page, 'keyboard help')
    await page.keyboard.press('Escape')
    await button(/^Export/).click()
    await accessible(page, 'a menu')
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: 'CSV', exact: true }).click(),
    ])
    assert.match(file.suggestedFilename(), /\.csv$/)
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.waitForURL(/transactions\/[0-9a-f-]{36}$/)
  },
)

step(
  'an API user is asked for and withdrawn; the rest of the workspace is told as it is',
  async () => {
    await page.goto(at('/api-users'))
    await button('Request an API user').click()
    await page.getByLabel('Name').fill('payout service')
    await page.getByLabel('Allowed addresses').fill('203.0.113.0/24')
    await page.getByLabel('Public key (PEM)').fill(PUBLIC_KEY)
    await accessible(page, 'asking for an API user')
    await button('Ask for it').click()
    await page.getByRole('heading', { name: 'Enrolment' }).waitFor()
    await look(page, 'API users', { picture: 'api-users' })
    await button('payout service').click()
    await button('Withdraw the request').click()
    await accessible(page, 'an API user')
    await button('Withdraw').click()
    await button('payout service').waitFor({ state: 'detached' })
    for (const [path, title, name] of [
      ['/people', 'People', undefined],
      ['/audit-log', 'Audit log', undefined],
      ['/health', 'Health', 'health'],
      ['/settings', 'Settings', undefined],
      ['', 'Overview', 'overview'],
    ] as const) {
      await page.goto(at(path))
      await heading(title)
      await page.locator('tbody tr').first().waitFor()
      await look(page, title, { picture: name, isOnPhone: name === 'overview' })
    }
    await page.goto(at('/audit-log'))
    await page
      .getByRole('button', { name: /^API user/ })
      .first()
      .click()
    await accessible(page, 'a line of the audit log')
  },
)

step(
  'the products: an invoice, a webhook that is tested and sent again, a rule, screening, an order at an exchange',
  async () => {
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const dialog = page.getByRole('dialog')

    await page.goto(at('/invoices'))
    await button('New invoice').first().click()
    await dialog.getByLabel('Amount').fill('49.90')
    await dialog.getByLabel('Order').fill('2026-1147')
    await accessible(page, 'a new invoice')
    await button('Make the invoice').click()
    await page.waitForURL(/invoices\/\w/)
    await page.getByText('Nothing was paid yet').waitFor()
    await look(page, 'an invoice', { picture: 'invoice' })

    await page.goto(at('/webhooks'))
    await button('New webhook').first().click()
    await dialog
      .getByLabel('URL')
      .fill(`http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`)
    await button('Make it').click()
    await dialog
      .getByText(/whsec_/)
      .first()
      .waitFor()
    await accessible(page, 'a webhook’s secret')
    await page.keyboard.press('Escape')
    await page.waitForURL(/webhooks\/\w/)
    await button('Send a test').click()
    await dialog.getByText('204').first().waitFor()
    await accessible(page, 'a delivery')
    await button('Send again').click()
    // Deliveries of other events may arrive in between.
    await waitFor('the same delivery, once more', async () => taken.length > new Set(taken).size)
    await page.goto(at('/webhooks'))
    await page.locator('tbody tr').first().waitFor()

    await page.goto(at('/forwarding'))
    await button('New rule').first().click()
    await dialog.getByLabel('From', { exact: true }).fill('5')
    await dialog.getByLabel('Maximum in 24 hours').fill('50')
    await dialog.getByLabel('Destination address').fill(DESTINATION)
    await accessible(page, 'a new rule')
    await button('Sign the rule').click()
    await page.waitForURL(/forwarding\/\w/)
    await page.getByText('Active', { exact: true }).first().waitFor()
    await look(page, 'a rule')

    await page.goto(at('/aml'))
    await page.getByLabel('Token').fill('sandbox')
    await page.getByLabel('Severe').check()
    await button('Save').click()
    await page
      .getByText(/^Saved/)
      .first()
      .waitFor()
    await look(page, 'screening')

    const key = (await platform.operator('devnet', {
      command: 'venue',
      action: 'key',
      exchange: 'kraken',
    })) as { api_key: string; api_secret: string }
    await page.goto(at('/exchanges'))
    await button('Link an account').first().click()
    await dialog.getByLabel('Exchange').selectOption('kraken')
    await dialog.getByLabel('Label').fill('desk')
    await dialog.getByLabel('API key').fill(key.api_key)
    await dialog.getByLabel('Secret').fill(key.api_secret)
    await dialog.getByText('The key may withdraw').click()
    await accessible(page, 'linking an exchange')
    await button('Link it').click()
    await page.waitForURL(/exchanges\/\w/)
    await look(page, 'an exchange account')
    await page.goto(at('/orders'))
    await button('New order').first().click()
    await dialog.getByLabel('Market').selectOption('BTC/USD')
    await button('At the market').click()
    await dialog.getByLabel('Amount').fill('0.01')
    await accessible(page, 'a new order')
    await button('Sign and order').click()
    await page.getByText('Filled', { exact: true }).first().waitFor()
    await look(page, 'an order')

    for (const [path, name] of [
      ['/tanks', undefined],
      ['/tanks/ETH', 'tank'],
      ['/prepaid', undefined],
      ['/prices', undefined],
      ['/staking', undefined],
      ['/orders', undefined],
      ['/wallets', undefined],
      ['/invoices', undefined],
      ['/webhooks', undefined],
      ['/forwarding', undefined],
      ['/exchanges', undefined],
    ] as const) {
      await page.goto(at(path))
      await page.locator('tbody tr, .empty').first().waitFor()
      await look(page, path, { picture: name })
    }
  },
)

step('a pasted request is told which rule it breaks', async () => {
  await page.goto(at('/check'))
  const body = '{"asset":"ETH"}'
  const { token } = await signRequest({
    apiKey: 'k',
    privateKey: PRIVATE_KEY,
    method: 'POST',
    uri: '/dac/v1/wallet',
    body,
  })
  for (const [label, text] of [
    ['Token', token],
    ['Address', '/dac/v1/wallet'],
    ['Body', `${body} `],
    ['API key', 'k'],
    ['Public key', PUBLIC_KEY],
  ] as const) {
    await page.getByLabel(label, { exact: true }).fill(text)
  }
  await button('Check').click()
  await page.getByText('without the space around it').first().waitFor()
  await look(page, 'the check of a request', { picture: 'check' })
  await page.getByLabel('Body', { exact: true }).fill(body)
  await button('Check').click()
  await page.getByText('No rule is broken').waitFor()
})

step(
  'who signs in elsewhere has no key there; a viewer reads, and is shown what he may',
  async () => {
    await page.goto(at('/people'))
    await button('Invite').click()
    await page.getByLabel('Email').fill('jo@acme.example')
    await button('Make the link').click()
    const link = await page.getByRole('region', { name: 'Link' }).innerText()
    await accessible(page, 'an invitation')
    const { page: other, context } = await visitor.open()
    await other.goto(`${origin}/console/sign-in`)
    await accessible(other, 'sign-in')
    await other.getByLabel('Email').fill(EMAIL)
    await other.getByLabel('Password').fill('not this one at all')
    await button('Continue', other).click()
    await other.getByText('SIGN_IN_FAILED').waitFor()
    await other.getByLabel('Password').fill(PASSWORD)
    await button('Continue', other).click()
    await button('Use a recovery code', other).click()
    await other.getByLabel('Recovery code').fill(recovery[0] as string)
    await button('Sign in', other).click()
    await heading('Overview', other)
    await other.goto(at('/send?asset=ETH'))
    await other.getByText('has no key for this sub-account').waitFor()
    await other.goto(at('/wallets?new='))
    await other.getByLabel('Asset', { exact: true }).selectOption('XRP')
    await button('Create', other).click()
    const dialog = other.getByRole('dialog', { name: 'Sign on another machine' })
    assert.match(
      await dialog.innerText(),
      /npx custody request POST '\/dac\/v1\/create-wallet' '\{"asset":"XRP"\}'/,
    )
    await accessible(other, 'to be signed elsewhere')
    await picture(other, 'signed-elsewhere')
    await other.keyboard.press('Escape')
    await other.goto(at(''))
    await other.getByRole('button', { name: /Your account/ }).click()
    await other.getByRole('menuitem', { name: 'Sign out' }).click()
    await heading('Sign in', other)
    await other.goto(`${origin}/console/join${new URL(link).hash}`)
    await heading('Join acme', other)
    await button(/Use a password/, other).click()
    await other.getByLabel('Your name').fill('Jo Park')
    assert.equal(await other.getByLabel('Email').inputValue(), 'jo@acme.example')
    await other.getByLabel('Password').fill(PASSWORD)
    await button('Continue', other).click()
    const theirs = await other.locator('.id .code').innerText()
    await other.getByLabel('Code').fill(codeOf(theirs, Date.now()))
    await button('Confirm', other).click()
    await other.getByText('I have kept them').click()
    await button('Go on', other).click()
    await heading('Overview', other)
    assert.equal(await other.getByRole('link', { name: 'Audit log' }).count(), 0)
    await other.goto(at('/audit-log'))
    await other.getByText('ROLE_REQUIRED').waitFor()
    await other.goto(`${origin}/console/w/nobody/main`)
    await heading('No such workspace', other)
    await context.close()
  },
)

step(
  'a passkey is made and signs in; an old sign-in is asked for a factor again; the colours of the night are readable',
  async () => {
    const session = await desk.newCDPSession(page)
    await session.send('WebAuthn.enable')
    await session.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
    await page.goto(`${origin}/console/account`)
    await page.getByText('This one').waitFor()
    await look(page, 'account')
    await platform.database.query(
      `update sessions set confirmed_at = confirmed_at - interval '1 hour'
        where person_id = (select id from people where email = $1)`,
      [EMAIL],
    )
    // The change bypasses the platform, which caches a session for a moment.
    await new Promise((resolve) => setTimeout(resolve, REMEMBER_MS + 50))
    await button('Add a passkey').click()
    await page.getByLabel('Name').fill('token in the safe')
    await button('Make it').click()
    await page.getByRole('dialog', { name: 'Confirm that it is you' }).waitFor()
    await accessible(page, 'confirming')
    await page.getByLabel('Code of your authenticator app').fill(await freshCode())
    await button('Confirm').click()
    await page.getByRole('cell', { name: 'token in the safe' }).waitFor()
    await button(/Your account/).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await heading('Sign in')
    await picture(page, 'sign-in')
    await button('Sign in with a passkey').click()
    await heading('Overview')
    await button(/Your account/).click()
    for (const _ of [1, 2]) await page.getByRole('menuitem', { name: /^Theme/ }).click()
    await page.keyboard.press('Escape')
    assert.equal(
      await page.evaluate(`getComputedStyle(document.body).backgroundColor`),
      'rgb(16, 20, 24)',
    )
    for (const path of ['', '/transactions', '/wallets/ETH', '/api-users', '/health', '/check']) {
      await page.goto(at(path))
      await page.locator('tbody tr, form').first().waitFor()
      await accessible(page, `${path} in the dark`)
      if (path === '') await picture(page, 'overview-dark')
    }
    assert.deepEqual(visitor.problems, [])
  },
)
