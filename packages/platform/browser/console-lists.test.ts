// Tests of the control panel's lists in a real browser: the search for transactions, and the
// display without a connection.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import pino from 'pino'
import { startBrowser } from '../../../testing/browser.ts'
import { consolePages } from '../src/console-api/console/pages.ts'
import { useApi } from '../testing/api-support.ts'
import { look, Visitor } from '../testing/console-browser.ts'
import { join } from '../testing/console-fixture.ts'
import { call, transferBody, type Transfer } from '../testing/harness.ts'

const TO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
const SENDER = 'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry'

const api = useApi({}, consolePages(pino({ level: 'silent' })))
let browser: Browser
let visitor: Visitor
let page: Page
let origin = ''
const ids: string[] = []
const sequenceId = 'payroll-2026-03'

before(async () => {
  await api.started
  const user = await api.user('acme')
  await call(user, 'POST', '/dac/v1/create-wallet', { asset: 'BTC' })
  await api.fund(user, 'BTC', 1_000_000_000n)
  for (const memo of ['rent of March', 'invoice-17', 'salary']) {
    const { body, text, status } = await call<Transfer>(
      user,
      'POST',
      '/dac/v1/transaction',
      transferBody('BTC', '0.1', TO, {
        memo,
        ...(memo === 'salary' ? { sequence_id: sequenceId } : {}),
      }),
    )
    assert.equal(status, 200, text)
    ids.push(body.id)
  }
  await api.database.query('update transactions set source_id = $2 where id = $1', [ids[2], SENDER])
  const owner = await join(api, user.workspaceId, 'owner')
  browser = await startBrowser()
  origin = owner.browser.origin
  visitor = new Visitor(browser, origin)
  const opened = await visitor.open()
  page = opened.page
  const [name = '', ...value] = owner.browser.cookie.split('=')
  await opened.context.addCookies([{ name, value: value.join('='), url: origin }])
})
after(async () => {
  await browser?.close()
})

const rows = () => page.locator('tbody tr a.row-link')
const box = () =>
  page.getByRole('searchbox', { name: 'Id, hash, address, sequence id or start of a memo' })

test('the transaction search finds senders, destinations, ids and memos, and is part of the URL', async () => {
  await page.goto(`${origin}/console/w/acme/main/transactions`)
  await rows().nth(2).waitFor()
  for (const [text, by, matches] of [
    [SENDER, 'address', [ids[2]]],
    [TO.toUpperCase(), 'address', [...ids].reverse()],
    ['rent of March', 'memo_begins', [ids[0]]],
    ['INVOICE', 'memo_begins', [ids[1]]],
    ['sal', 'memo_begins', [ids[2]]],
    ['March', 'memo_begins', []],
    [ids[1] as string, 'id', [ids[1]]],
    ['nothing-has-this-memo-1', 'address', []],
  ] as const) {
    await box().fill(text)
    await box().press('Enter')
    await page.waitForURL((url) => url.searchParams.get(by) === text)
    assert.deepEqual([...new URL(page.url()).searchParams.keys()], [by], text)
    if (matches.length === 0) await page.getByText('Nothing fits these filters').waitFor()
    else {
      await page.getByText(`1–${matches.length} of ${matches.length}`).waitFor()
      const shown = await rows().evaluateAll(
        (links: { getAttribute(name: string): string | null }[]) =>
          links.map((link) => link.getAttribute('href')?.split('/').at(-1)),
      )
      assert.deepEqual(shown, matches, text)
    }
    if (text === SENDER)
      await look(page, 'a search by address', { picture: 'search', isOnPhone: true })
  }
  // The search also begins after a pause in typing, and keeps what is typed.
  await box().fill('')
  await rows().nth(2).waitFor()
  await box().pressSequentially('sal')
  await page.waitForURL((url) => url.searchParams.get('memo_begins') === 'sal')
  await page.getByText('1–1 of 1').waitFor()
  await box().pressSequentially('ary')
  await page.waitForURL((url) => url.searchParams.get('memo_begins') === 'salary')
  assert.equal(await box().inputValue(), 'salary')
  await box().fill(sequenceId)
  await page.waitForURL((url) => url.searchParams.get('sequence_id') === sequenceId)
  await page.getByText('1–1 of 1').waitFor()
  await box().fill('')
  await rows().nth(2).waitFor()
  assert.equal(new URL(page.url()).search, '')
  assert.deepEqual(visitor.problems, [])
})

test('a memo prefix with too many matches asks for more characters; an address is still found', async () => {
  const more = `insert into transactions (id, kind, workspace_id, sub_account_id, asset, network,
       amount, fee_asset, source_type, destination_type,
       destination_id, memo, state, status, created_at, confirmed_at)
     select gen_random_uuid(), kind, workspace_id, sub_account_id, asset, network, n, fee_asset,
       source_type, destination_type,
       case n when 1 then 'payroll' else 'bcrt1qexample' end, 'payroll ' || n, 'CONFIRMED',
         'confirmed', timestamptz '2026-01-01',
       timestamptz '2026-01-01' from transactions, generate_series(1, 1001) n where id = $1`
  await api.database.query(more, [ids[0]])
  await page.goto(`${origin}/console/w/acme/main/transactions`)
  await box().fill('Payroll ')
  await box().press('Enter')
  await page.getByText('1–1 of 1').waitFor()
  assert.equal(new URL(page.url()).searchParams.get('address'), 'Payroll')
  for (const text of ['payro', 'payroll 1 and']) {
    await box().fill(text)
    await box().press('Enter')
    await page
      .getByText(text === 'payro' ? 'send a longer prefix' : 'Nothing fits these filters')
      .waitFor()
  }
  await box().fill('payroll 100')
  await box().press('Enter')
  await page.getByText('1–3 of 3').waitFor()
  await api.admin.query(`delete from transactions where memo like 'payroll %'`)
  assert.deepEqual(
    visitor.problems.splice(0).filter((problem) => !problem.includes('400')),
    [],
  )
})

test('the panel displays commands as installed: npx custody in a checkout, custody in a bundle', async () => {
  const places = [
    ['audit-log', 'audit-log verify FILE'],
    ['prepaid', `prepaid-fee adjust --workspace 'acme' --amount 500`],
    ['tanks/TRX', `gas-tank set --workspace 'acme' --network TRX --threshold 0.5`],
  ] as const
  const before = process.env['CUSTODY_BUNDLE']
  try {
    for (const [bundle, name] of [
      [undefined, 'npx custody'],
      ['platform', 'custody'],
    ] as const) {
      if (bundle === undefined) delete process.env['CUSTODY_BUNDLE']
      else process.env['CUSTODY_BUNDLE'] = bundle
      for (const [path, words] of places) {
        await page.goto(`${origin}/console/w/acme/main/${path}`)
        const command = page.locator('pre', { hasText: words }).first()
        await command.waitFor()
        assert.ok(
          (await command.innerText()).startsWith(`${name} ${words}`),
          await command.innerText(),
        )
      }
      // A write that this browser cannot sign is displayed as a command.
      await page.goto(`${origin}/console/w/acme/main/wallets?new=`)
      await page.getByLabel('Asset', { exact: true }).selectOption('XRP')
      await page.getByRole('button', { name: 'Create', exact: true }).click()
      const dialog = page.getByRole('dialog', { name: 'Sign on another machine' })
      assert.match(
        await dialog.locator('pre').first().innerText(),
        new RegExp(`^${name} request POST '/dac/v1/create-wallet'`),
      )
    }
  } finally {
    if (before === undefined) delete process.env['CUSTODY_BUNDLE']
    else process.env['CUSTODY_BUNDLE'] = before
  }
  assert.deepEqual(visitor.problems, [])
})

test('a shortened value has its full digits in the tooltip and on the transaction’s page', async () => {
  await api.database.query(
    'update transactions set amount_usd = 1312509001, amount = 123456789012345678 where id = $1',
    [ids[0]],
  )
  await page.goto(`${origin}/console/w/acme/main/transactions`)
  await rows().nth(2).waitFor()
  const value = page.getByText('≈ $1,312.50', { exact: true })
  assert.equal(await value.getAttribute('title'), '$1,312.509001')
  // A value in whole cents is exact as displayed, so it has no title.
  const whole = page.getByText('$0.10', { exact: true }).first()
  assert.equal(await whole.getAttribute('title'), null)
  await page.getByText('−1,234,567,890.12345678 BTC', { exact: true }).waitFor()
  await look(page, 'values of transactions', { picture: 'values', isOnPhone: true })
  await page.goto(`${origin}/console/w/acme/main/transactions/${ids[0]}`)
  await page.getByText('≈ $1,312.50 at the time').waitFor()
  await page
    .locator('dl', { hasText: 'Value at that time' })
    .getByText('$1,312.509001', { exact: true })
    .waitFor()
  await api.database.query(
    'update transactions set amount_usd = 100000, amount = 10000000 where id = $1',
    [ids[0]],
  )
  assert.deepEqual(visitor.problems, [])
})

const notice = () => page.locator('.network-notice')
const again = () => notice().getByRole('button', { name: 'Try again', exact: true })

test('while offline, the page keeps the last data with a notice, and reloads them when online', async () => {
  await page.goto(`${origin}/console/w/acme/main`)
  await page.getByText('Total balance').waitFor()
  await page.getByRole('link', { name: 'Transactions', exact: true }).click()
  await rows().nth(2).waitFor()
  await page.getByRole('link', { name: 'Overview', exact: true }).click()
  await page.getByText('Total balance').waitFor()
  await page.context().setOffline(true)
  // The platform is on this device, which needs no network for it, until a read fails.
  assert.equal(await notice().innerText(), '')
  await page.getByRole('link', { name: 'Transactions', exact: true }).click()
  await notice().getByText('This device is offline').waitFor()
  await notice()
    .getByText(/What you see was read at \d\d:\d\d:\d\d and may have changed/)
    .waitFor()
  assert.equal(await rows().count(), 3)
  await look(page, 'offline', { picture: 'offline', isOnPhone: true })
  await api.database.query(`update transactions set memo = 'changed while offline' where id = $1`, [
    ids[0],
  ])
  await again().click()
  await notice().getByText('What you see was read at').waitFor()
  assert.equal(await page.getByText('changed while offline').count(), 0)
  await page.context().setOffline(false)
  await page.getByText('changed while offline').waitFor()
  await notice().getByText('offline').waitFor({ state: 'detached' })
  assert.deepEqual(visitor.problems, [])
})

test('while the platform fails, a notice gives the reason, and its button reloads the data', async () => {
  await page.goto(`${origin}/console/w/acme/main/transactions`)
  await rows().nth(2).waitFor()
  const path = '**/api/dac/v1/transactions?*'
  let failed = 0
  await page.route(path, (route) => {
    failed++
    return route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      body: JSON.stringify({ code: 'UNAVAILABLE', message: 'the database does not answer' }),
    })
  })
  // After leaving and returning, the cached list is displayed immediately and then read again.
  await page.getByRole('link', { name: 'Overview', exact: true }).click()
  await page.getByText('Total balance').waitFor()
  await page.getByRole('link', { name: 'Transactions', exact: true }).click()
  await notice().getByText('the database does not answer').waitFor()
  assert.equal(await rows().count(), 3)
  // The page also retries in the background, and the notice stays until a retry succeeds.
  const before = failed
  while (failed === before) await new Promise((resolve) => setTimeout(resolve, 100))
  await notice().getByText('the database does not answer').waitFor()
  await page.unroute(path)
  await again().click()
  await notice().getByText('the database does not answer').waitFor({ state: 'detached' })
  assert.equal(await notice().innerText(), '')
})

test('a slow response shows a loading notice until the response arrives', async () => {
  const path = '**/api/dac/v1/transactions?*'
  let open = (): void => undefined
  const held = new Promise<void>((resolve) => {
    open = resolve
  })
  await page.route(path, async (route) => {
    await held
    await route.continue()
  })
  await page.goto(`${origin}/console/w/acme/main/transactions`)
  await notice().getByText('The platform responds slowly').waitFor()
  open()
  await rows().nth(2).waitFor()
  await notice().getByText('The platform responds slowly').waitFor({ state: 'detached' })
  await page.unroute(path)
})
