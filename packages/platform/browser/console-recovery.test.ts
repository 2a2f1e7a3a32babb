// Tests in a real browser that a person joins by passkey, stores recovery codes, loses the device,
// and regains access.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import pino from 'pino'
import { startBrowser } from '../../../testing/browser.ts'
import { consolePages } from '../src/console-api/console/pages.ts'
import { invite } from '../src/console-api/people/invitations.ts'
import { useApi } from '../testing/api-support.ts'
import { look, Visitor } from '../testing/console-browser.ts'

const api = useApi({}, consolePages(pino({ level: 'silent' })))
let browser: Browser
let visitor: Visitor
let origin = ''
let workspaceId = ''

before(async () => {
  await api.started
  workspaceId = (await api.user('acme')).workspaceId
  browser = await startBrowser()
  origin = `http://localhost:${new URL(api.base).port}`
  visitor = new Visitor(browser, origin)
})
after(async () => {
  await browser?.close()
})

const button = (name: string, page: Page) => page.getByRole('button', { name, exact: true })
const heading = (name: string, page: Page) =>
  page.getByRole('heading', { level: 1, name }).waitFor()

/** Opens a browser on a new device with its own authenticator. */
async function device(): Promise<{ page: Page; context: BrowserContext }> {
  const opened = await visitor.open()
  const session = await opened.context.newCDPSession(opened.page)
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
  return opened
}

async function joinByPasskey(email: string): Promise<{ page: Page; context: BrowserContext }> {
  const { token } = await invite(api.services, api.database, {
    workspaceId,
    role: 'owner',
    email,
    person: null,
    by: null,
  })
  const opened = await device()
  await opened.page.goto(`${origin}/console/join#${token}`)
  await opened.page.getByLabel('Your name').fill('Mara Lindqvist')
  await button('Make a passkey', opened.page).click()
  await heading('Keep a way back in', opened.page)
  return opened
}

const NEED = 'Your only way to sign in is one passkey: make recovery codes, or add another passkey'

test('the overview reminds a person without recovery codes until they create the codes', async () => {
  const { page, context } = await joinByPasskey('later@example.test')
  await button('Later', page).click()
  await heading('Overview', page)
  await page.getByText(NEED).click()
  await heading('Account and sign-in', page)
  await page.getByText('You have no recovery codes').waitFor()
  await button('New recovery codes', page).click()
  await page.locator('.recovery code').nth(9).waitFor()
  await page.getByText('I have kept them').click()
  await button('Go on', page).click()
  await page.getByText('10 of 10 left').waitFor()
  await page.goto(`${origin}/console/w/acme/main`)
  await page
    .getByText('Nothing needs your attention.')
    .or(page.getByText('Health cannot be read'))
    .or(page.locator('.needs'))
    .first()
    .waitFor()
  assert.equal(await page.getByText(NEED).count(), 0)
  await context.close()
})

test('a person who lost their device signs in by recovery code and registers a new passkey', async () => {
  const lost = await joinByPasskey('mara@example.test')
  await look(lost.page, 'a way back in', { picture: 'way-back', isOnPhone: true })
  await button('Make ten recovery codes', lost.page).click()
  await heading('Keep your recovery codes', lost.page)
  await lost.page.locator('.recovery code').nth(9).waitFor()
  const [code = ''] = await lost.page.locator('.recovery code').allInnerTexts()
  await lost.page.getByText('I have kept them').click()
  await button('Go on', lost.page).click()
  await heading('Overview', lost.page)
  const { page, context } = await device()
  await page.goto(`${origin}/console/sign-in`)
  await button('I have lost my passkey', page).click()
  await heading('Sign in with a recovery code', page)
  await page.getByLabel('Email').fill('mara@example.test')
  await page.getByLabel('Recovery code').fill('0000-0000-0000-0000')
  await button('Sign in', page).click()
  await page.getByText('the e-mail address or the recovery code is wrong').waitFor()
  await look(page, 'sign-in by recovery code', { picture: 'recover', isOnPhone: true })
  await page.getByLabel('Recovery code').fill(code.toLowerCase())
  await button('Sign in', page).click()
  await heading('Make a new passkey', page)
  await page.getByText('9 recovery codes are left').waitFor()
  await look(page, 'after a recovery', { picture: 'recovered', isOnPhone: true })
  await button('Make a passkey', page).click()
  await heading('Account and sign-in', page)
  await page.getByRole('cell', { name: 'Passkey after recovery' }).waitFor()
  await look(page, 'account after a recovery', {
    picture: 'recovered-account',
    isWhole: true,
    isOnPhone: true,
  })
  await page.getByRole('button', { name: /Your account/ }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await button('Sign in with a passkey', page).click()
  await heading('Overview', page)
  await lost.page.reload()
  await heading('Sign in', lost.page)
  assert.deepEqual(visitor.problems, [])
  await context.close()
  await lost.context.close()
})
