import {
  findBrowser,
  initialize,
  openPrivateWindow,
  readConfig,
  run as serve,
} from '@custody/approver'
import { printLines } from '@custody/chains/terminal'
import { join } from 'node:path'
import { need, type Run } from './typed.ts'

/** Creates the settings of a person's page. */
export const init: Run = async ({ values }) => {
  const optional = (option: string) =>
    typeof values[option] === 'string' ? values[option] : undefined
  const dir = need(values, 'dir')
  const { origin, person, host, port } = await initialize({
    dir,
    platform: need(values, 'platform'),
    apiKey: need(values, 'api-key'),
    privateKey: need(values, 'private-key'),
    trustFile: need(values, 'trust-file'),
    person: need(values, 'person'),
    origin: optional('origin'),
    listen: optional('listen'),
    document: optional('document'),
  })
  const file = join(dir, 'approver.json')
  return {
    result: { file, origin, person, host, port },
    text: [
      `settings: ${file}`,
      `origin:   ${origin} (passkeys of the page work only there)`,
      ...(host === null ? [] : [`listens:  ${host}, port ${port}, for the proxy of the origin`]),
      `start it: npx custody approver run --dir ${dir}`,
    ],
  }
}

/** Serves the page and opens it in a private window, until a signal ends it. */
export const run: Run = async ({ values }) => {
  const dir = need(values, 'dir')
  const ended = new Promise<void>((done) => {
    for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => done())
  })
  const { 'no-open': isClosed, browser: program } = values
  const browser =
    isClosed === true ? null : findBrowser(typeof program === 'string' ? program : undefined)
  const running = await serve(dir, readConfig(dir), {
    report: (line) => printLines([line]),
    open: browser && ((url) => openPrivateWindow(browser, url)),
  })
  printLines(['end it with Ctrl-C'])
  await ended
  await running.close()
  return { result: { url: running.url }, text: 'the page has ended' }
}
