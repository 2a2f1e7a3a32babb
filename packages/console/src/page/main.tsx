import { render } from 'preact'
import { loadAssets } from './api/assets.ts'
import { startLive } from './api/live.ts'
import { startNetwork } from './api/network.ts'
import { openSession, startSession } from './api/session.ts'
import { App } from './app.tsx'
import { startRouter } from './router.ts'
import { startTheme } from './theme.ts'

startTheme()
startRouter()
startSession()
startNetwork()
render(<App />, document.getElementById('app') as HTMLElement)
startLive()
await Promise.all([openSession(), loadAssets()])
