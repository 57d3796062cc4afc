"""How everything nearkernel shows looks: a style for pages, the pieces of a page, and a style for figures.

`style()` is the CSS. `page`, `section`, `table`, `definitions`, `figure` and their like make HTML, and escape the text
that they are given; what is HTML already is an `Html`. `_look.drawing` has the colors and the Matplotlib style;
`inline` sets an SVG of its making into a page, where it takes on the page's colors.
"""

from ._formula import formula as formula
from ._html import Html as Html
from ._html import beside as beside
from ._html import code as code
from ._html import definitions as definitions
from ._html import dot as dot
from ._html import figure as figure
from ._html import footer as footer
from ._html import heading as heading
from ._html import inline as inline
from ._html import joined as joined
from ._html import page as page
from ._html import paragraphs as paragraphs
from ._html import pictures as pictures
from ._html import reproduce as reproduce
from ._html import section as section
from ._html import style as style
from ._html import table as table
from ._html import warning as warning
