import { parseArgs } from 'node:util'
import { jsonText, oneLine } from '@custody/chains/terminal'
import { hardenProcess } from '@custody/threshold'
import { startTracing } from '@custody/tracing'
import { loadConfig } from './config.ts'
import { realEnvironment } from './environment.ts'
import { closeContents, keepInspectorClosed, openedBy } from './hardening.ts'
import { openLog, reason } from './log.ts'
import { startNode } from './node.ts'

/**
 * Maximum time of an orderly shutdown in milliseconds. `node main.ts --home DIR [--keep]` runs one
 * signer node until its standard input ends, or until SIGTERM.
 */
const STOP_MS_MAX = 4500

async function main(): Promise<void> {
  const { attaching, coreDumps } = hardenProcess()
  const { values } = parseArgs({
    options: {
      home: { type: 'string' },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) {
    process.stdout.write(
      'Usage: custody signer start --home HOME    Run the signer node whose home folder is HOME until SIGTERM.\n',
    )
    process.exit(0)
  }
  if (!values.home) throw new Error('--home is required: the home folder of the signer node')
  const environment = realEnvironment
  const config = loadConfig(values.home)
  closeContents(values.home)
  const inspected = openedBy(config.mode, process.execArgv, process.env['NODE_OPTIONS'])
  if (inspected !== null) throw new Error(inspected)
  const log = openLog(config.node, () => environment.now())
  keepInspectorClosed(config.mode, () => {
    log('warn', 'SIGUSR1 was received: no inspector is opened')
  })
  log('info', 'hardened', { attaching, core_dumps: coreDumps })
  const stopTracing = await startTracing(`custody-signer-${config.node}`, process.env)
  // A node that still waits for its key has nothing to close.
  let stop = async (): Promise<void> => {}
  const end = (why: string): void => {
    log('info', 'ending', { why })
    setTimeout(() => {
      environment.exit(1)
    }, STOP_MS_MAX).unref()
    stop()
      .then(stopTracing)
      .then(
        () => {
          environment.exit(0)
        },
        (error: unknown) => {
          log('error', 'the node could not stop cleanly', { reason: reason(error) })
          environment.exit(1)
        },
      )
  }
  process.on('SIGTERM', () => {
    end('SIGTERM')
  })
  process.on('SIGINT', () => {
    end('SIGINT')
  })
  if (!values.keep) {
    process.stdin.on('end', () => {
      end('standard input closed')
    })
    process.stdin.on('error', () => {
      end('standard input closed')
    })
    process.stdin.resume()
  }
  stop = (await startNode(config, environment, log, process.env)).stop
  process.stdout.on('error', () => {})
  process.stdout.write(`signer ${config.node} ready https://${config.host}:${config.port}\n`)
}

process.on('unhandledRejection', (error) => {
  process.stderr.write(
    `${jsonText({ level: 'error', message: 'unhandled rejection', reason: reason(error) })}\n`,
  )
  process.exit(70)
})
main().catch((error: unknown) => {
  process.stderr.write(`signer: ${oneLine(reason(error))}\n`)
  process.exit(1)
})
