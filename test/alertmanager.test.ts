import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { read, ROOT } from '../packages/platform/testing/documents.ts'

/**
 * Tests deploy/monitoring/alertmanager.yml with a real Alertmanager and with the test's own mail
 * server and chat: which messages reach a person.
 */
const FILE = join(ROOT, 'deploy/monitoring/alertmanager.yml')
const PROGRAMS = ['prometheus-alertmanager', 'alertmanager']
const isThere = (program: string) => spawnSync(program, ['--version']).error === undefined
const program = PROGRAMS.find(isThere)
const amtool = {
  skip: isThere('amtool') ? false : 'amtool is not installed (Debian: prometheus-alertmanager)',
}
const alertmanager = {
  skip:
    program === undefined
      ? 'Alertmanager is not installed (Debian: prometheus-alertmanager)'
      : false,
}

const folder = mkdtempSync(join(tmpdir(), 'custody-alertmanager-'))
const ends: (() => Promise<unknown> | void)[] = []
after(async () => {
  for (const end of ends.reverse()) await end()
  rmSync(folder, { recursive: true, force: true })
})

const tool = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync('amtool', args, { encoding: 'utf8' })
  assert.equal(status, 0, `${stdout}\n${stderr}`)
  return stdout.trim()
}

test(
  'Alertmanager accepts the configuration, which names secret files and contains no secret',
  amtool,
  () => {
    tool('check-config', FILE)
    assert.doesNotMatch(
      read('deploy/monitoring/alertmanager.yml'),
      /^\s*(smtp_auth_password|slack_api_url|api_url|auth_password):/m,
    )
  },
)

test(
  'each alert severity has a receiver, and alerts without a severity also reach a person',
  amtool,
  () => {
    const rules = `${read('deploy/monitoring/custody.rules.yml')}${read('deploy/monitoring/schedule.rules.yml')}`
    const severities = new Set(
      [...rules.matchAll(/severity: (\w+)/g)].map(([, name]) => name as string),
    )
    assert.deepEqual([...severities].sort(), ['page', 'ticket'])
    const receiver = (...labels: string[]) =>
      tool('config', 'routes', 'test', `--config.file=${FILE}`, ...labels)
    assert.deepEqual(
      [receiver('severity=page'), receiver('severity=ticket'), receiver('alertname=Other')],
      ['pages', 'tickets', 'tickets'],
    )
  },
)

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => {
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/**
 * Starts a mail server that accepts every message.
 * @param took called with each message
 */
const mailServer = (took: (message: string) => void): Promise<number> =>
  listening(
    createServer((socket) => {
      let [text, message] = ['', null as string | null]
      socket.on('error', () => undefined)
      socket.write('220 test\r\n')
      socket.on('data', (chunk) => {
        text += chunk.toString()
        for (let end = text.indexOf('\r\n'); end >= 0; end = text.indexOf('\r\n')) {
          const line = text.slice(0, end)
          text = text.slice(end + 2)
          if (message === null) {
            if (/^DATA/i.test(line)) message = ''
            socket.write(
              message === null
                ? /^QUIT/i.test(line)
                  ? '221 bye\r\n'
                  : '250 ok\r\n'
                : '354 go on\r\n',
            )
          } else if (line === '.') {
            took(message)
            message = null
            socket.write('250 ok\r\n')
          } else message += `${line}\n`
        }
      })
    }),
  )

/** Starts a server for the incoming webhook of a chat. */
const chatServer = (took: (body: string) => void): Promise<number> =>
  listening(
    createHttpServer((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => {
        body += chunk.toString()
      })
      request.on('end', () => {
        took(body)
        response.end('ok')
      })
    }),
  )

/**
 * Returns the address on which the child process listens.
 * @throws Error with the output of the child if it ends before it listens
 */
function addressOf(child: ChildProcess): Promise<string> {
  let text = ''
  return new Promise((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const address = /Listening on"? address=(127\.0\.0\.1:\d+)/.exec(text)?.[1]
      if (address !== undefined) resolve(address)
    })
    child.once('exit', (code) => reject(new Error(`it ended with ${String(code)}: ${text}`)))
    child.once('error', reject)
  })
}

test(
  'pages and tickets reach a mailbox and a chat, with the alert and its runbook',
  alertmanager,
  async () => {
    const received: string[] = []
    let wake = (): void => undefined
    const took = (text: string) => {
      received.push(text)
      wake()
    }
    const [mail, chat] = [await mailServer(took), await chatServer(took)]
    writeFileSync(join(folder, 'chat.url'), `http://127.0.0.1:${chat}/hook`)
    writeFileSync(join(folder, 'smtp.password'), 'secret')
    const config = read('deploy/monitoring/alertmanager.yml')
      .replace('smtp.example.com:587', `127.0.0.1:${mail}`)
      .replace('smtp_require_tls: true', 'smtp_require_tls: false')
      .replaceAll('/etc/prometheus/', `${folder}/`)
      .replaceAll(/group_wait: \d+s/g, 'group_wait: 0s')
    writeFileSync(join(folder, 'alertmanager.yml'), config)
    const child = spawn(
      program as string,
      [
        `--config.file=${join(folder, 'alertmanager.yml')}`,
        `--storage.path=${join(folder, 'data')}`,
        '--web.listen-address=127.0.0.1:0',
        '--cluster.listen-address=',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    ends.push(async () => {
      if (child.exitCode !== null) return
      const gone = once(child, 'exit')
      child.kill()
      await gone
    })
    const address = await addressOf(child)
    const alerts = [
      {
        labels: { alertname: 'CustodySigningDead', severity: 'page' },
        annotations: {
          summary: 'Nothing can be signed',
          description: 'Fewer than two.',
          runbook_url: 'runbooks.md#custodysigningdead',
        },
      },
      {
        labels: { alertname: 'CustodyTankLow', severity: 'ticket' },
        annotations: {
          summary: 'A gas tank is low',
          description: 'ETH.',
          runbook_url: 'runbooks.md#custodytanklow',
        },
      },
    ]
    const answer = await fetch(`http://${address}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(alerts),
    })
    assert.equal(answer.status, 200, await answer.text())
    while (received.length < 4)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    const mails = received.filter((each) => each.includes('Subject: ')).sort()
    const chats = received.filter((each) => each.startsWith('{')).sort()
    assert.deepEqual([mails.length, chats.length], [2, 2], received.join('\n---\n'))
    const subject = (text: string) => /^Subject: (.*)$/m.exec(text)?.[1]
    assert.deepEqual(mails.map(subject).sort(), [
      '[FIRING] page: Nothing can be signed',
      '[FIRING] ticket: A gas tank is low',
    ])
    assert.ok(
      mails.some((each) => each.includes('custody-on-call@example.com') && each.includes('page: ')),
      'a page goes to who is on call',
    )
    const page = chats.find((each) => each.includes('CustodySigningDead')) ?? ''
    for (const part of [
      '[FIRING] page: CustodySigningDead',
      'Nothing can be signed. Fewer than two. (runbooks.md#custodysigningdead)',
    ])
      assert.ok(page.includes(part), page)
  },
)
