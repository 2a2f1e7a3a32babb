export { loadSite, notBuilt, type Answer, type Site } from './site.ts'
