// SPDX-License-Identifier: MIT
// The menu of what can be taken away from the page: the picture, and a link to what is seen.
import { copyText } from './clipboard.js';
import { byId, element } from './paint.js';
import { hasPicture, savePicture } from './picture_file.js';

/** The address of the page with all that is looked at. @param {any} app */
function linkText(app) {
  return location.href.replace(/#.*$/, '') + app.address.fragment();
}

/** Offers the picture where the view has one. @param {any} app */
export function offerPictures(app) {
  for (const option of /** @type {HTMLSelectElement} */ (byId('save')).options)
    option.disabled = ['png', 'svg'].includes(option.value) && !hasPicture(app);
}

/** @param {any} app */
export function listenToSaving(app) {
  const menu = /** @type {HTMLSelectElement} */ (byId('save'));
  menu.append(
    element('option', { value: '' }, 'Save'),
    element('option', { value: 'png' }, 'picture as PNG'),
    element('option', { value: 'svg' }, 'picture as SVG'),
    element('option', { value: 'link' }, 'copy a link to this'),
  );
  menu.addEventListener('change', async () => {
    const { value } = menu;
    menu.value = '';
    if (value === 'png' || value === 'svg') savePicture(app, value);
    if (value === 'link') {
      await copyText(linkText(app));
      app.say('link copied');
    }
  });
}
