import { z } from 'zod'
import { panelEndpoint } from '../../people/endpoint.ts'
import { SUB_ACCOUNT, subAccountParams } from '../mirror.ts'
import { itemShape, itemsOf } from './causes.ts'
import { readFacts, type Services } from './facts.ts'

/** Returns what needs attention in a sub-account, its workspace and the installation. */
export const readAttention = panelEndpoint({
  method: 'GET',
  path: `${SUB_ACCOUNT}/attention`,
  summary: 'Read what needs attention',
  needs: 'viewer',
  params: z.strictObject(subAccountParams),
  response: z.object({
    items: z.array(itemShape).meta({ description: 'The most urgent first' }),
  }),
  async handler({ caller, visitor }, services: Services) {
    const { workspaceId, workspace, subAccountId, subAccount } = caller
    const { personId } = visitor.session
    const facts = await readFacts(services, {
      workspaceId,
      workspace,
      subAccountId,
      subAccount,
      personId,
    })
    const names = [workspace, subAccount].map(encodeURIComponent).join('/')
    return { body: { items: itemsOf(facts, `/console/w/${names}`) } }
  },
})
